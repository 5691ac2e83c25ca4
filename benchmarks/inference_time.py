"""Size and inference time of the papers' students beside BERT, in one run.

Tang et al. 2019 (table 2), Liu 2020 (table 4.4) and Wu et al. 2020 (table 2) give the seconds that their systems
take for the same rows on one GPU.  Here the same architectures, in the sizes of the papers' profiles, answer the
same number of rows by the project's own prediction: on one core, and on all.  Weights are random, since they do not
change the time; layers of BERT are built in their sizes.

    python benchmarks/inference_time.py --paper mkd --task qnli python benchmarks/inference_time.py --paper sra
    --task qqp python benchmarks/inference_time.py --paper kd --task sst2

Run it where the task is prepared (with glue_base.yaml: `dvc repro prepare@qnli fetch_models`), on a machine that
does nothing else. Seconds are from raw text, and are extrapolated: of the batches of similar length that prediction
makes of all rows, a few are timed, evenly from the shortest to the longest.  An LSTM takes one thread and batches of
256 whatever the machine has; layers of BERT take all threads and batches of
32.  It writes results/inference_time_PAPER.{json,md}.
"""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import numpy as np
import torch
import typer
from harness import (
    RESULTS,
    Out,
    Repeats,
    evenly,
    facts,
    ratio,
    seconds,
    spread,
    summary,
    table,
    take_turns,
    tokens_per_row,
    write_results,
)
from papers.tables import read_published

from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.base.text import Text
from pipeline_lib.models.students.student import Student, attend_quickly, quick_batch
from pipeline_lib.models.students.vocabulary import build_tokenizer, count_words, select_words
from pipeline_lib.params import StudentSettings, load_params
from pipeline_lib.shards.columns import texts as texts_of
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.training.distillation.initialisation import Start, start_of

PACKAGES = ("torch", "transformers", "tokenizers", "numpy")


@dataclass(frozen=True)
class Comparison:
    """A paper's table of inference times.

    :ivar ours: the paper's own student, by which the others' times are divided.
    :ivar rows: how many rows the seconds are for.
    :ivar systems: by the table's name or one of ours: profile, its student, and what differs.
    """

    table: str
    ours: str
    rows: int
    systems: Mapping[str, tuple[str, str, Mapping[str, Any]]]


def _bert(depth: int, *, large: bool = False, **differs: Any) -> tuple[str, str, dict[str, Any]]:
    width = 1024 if large else 768
    sizes = {"depth": depth, "width": width, "heads": width // 64, "feedforward": 4 * width}
    return "thesis_mkd", "tiny", sizes | differs


COMPARISONS = {
    "kd": Comparison("2", "BiLSTM", 67349, {"BERT-large": _bert(24, large=True), "BiLSTM": ("tang", "bilstm", {})}),
    "mkd": Comparison(
        "4.4",
        "MKD-LSTM",
        12800,
        {
            "BERT-base": _bert(12),
            "BERT-PKD, 6 layers": _bert(6),
            "BERT-PKD": _bert(3),
            "MKD-Transformer": _bert(3, pool="mean", classifier=512),
            "TinyBERT": ("thesis_mkd", "tiny", {}),
            "MKD-LSTM": ("thesis_mkd", "biattentive", {}),
            "Distilled BiLSTM": ("thesis_mkd", "bilstm", {}),
        },
    ),
    "sra": Comparison(
        "2",
        "BiLSTM SRA",
        100000,
        {
            "BERT-large": _bert(24, large=True),
            "BERT-base": _bert(12),
            "BERT6-PKD": _bert(6),
            "BERT3-PKD": _bert(3),
            "BiLSTM KD": ("tang", "bilstm_300x400", {}),
            "BiLSTM SRA": ("sra", "bilstm_sra", {}),
        },
    ),
}
"""By the papers' keys in published.yaml; the thesis' BERT-PKD has three layers (section 4.3.3)."""


def main(
    task: Annotated[str, typer.Option(help="Prepared task to take the texts from.")] = "qnli",
    paper: Annotated[str, typer.Option(help=f"Whose table: {', '.join(COMPARISONS)}.")] = "mkd",
    batches: Annotated[int, typer.Option(min=1, help="Batches to time.")] = 6,
    model: Annotated[Path, typer.Option(help="Whose word pieces are read.")] = Path("data/raw/models/minilm"),
    repeats: Repeats = 3,
    device: Annotated[str, typer.Option(help="Of the students.")] = "cpu",
    seed: Annotated[int, typer.Option(help="Seed of the weights.")] = 1,
    out: Out = RESULTS,
) -> None:
    """Measure and write the results."""
    if paper not in COMPARISONS:
        raise typer.BadParameter(f"{paper!r} is none of {', '.join(COMPARISONS)}")
    comparison = COMPARISONS[paper]
    cores = usable_cores()
    counts = sorted({1, cores}) if device == "cpu" else [cores]
    fact = facts(PACKAGES, cores, " and ".join(map(str, counts)))
    rows = ShardSet.open(Layout().task(task) / "train").to_table()
    texts, words = texts_of(rows), select_words(count_words([rows]), 1)
    students: dict[str, Any] = {}
    turns: dict[str, Callable[[], float]] = {}
    for name, (profile, base, differs) in comparison.systems.items():
        torch.manual_seed(seed)
        settings = load_params(Path(f"profiles/{profile}.yaml")).students[base]
        sizes = settings.model_copy(update=dict(differs))
        pair = isinstance(texts[0], tuple)
        student = _student(sizes, model, words, pair=pair, device=torch.device(device))
        students[name], timed = _timed(student, texts, batches)
        turns[name] = functools.partial(_rate, student, timed)
    for threads in counts:
        torch.set_num_threads(threads)
        rates = take_turns(turns, repeats)
        for name, values in rates.items():
            students[name][f"threads {threads}"] = {
                "rows_per_second": summary(values),
                "seconds": summary([comparison.rows / value for value in values], 2),
                "times_slower": ratio(rates[comparison.ours], values),
            }
    results = {
        "facts": fact | {"seeds": {"weights": seed}, "repeats": repeats, "device": device},
        "data": f"{comparison.rows:,} rows like the {len(texts):,} training rows of {task}",
        "batches": batches,
        "published": _published(paper, comparison),
        "students": students,
    }
    write_results(f"inference_time_{paper}", results, _markdown(results, paper, counts), out)


def _published(paper: str, comparison: Comparison) -> dict[str, dict[str, float]]:
    """Return the table's parameters (millions) and times beside the paper's own, by system."""
    measured: dict[str, dict[str, float]] = {}
    for printed in read_published()[1]:
        if (printed.paper, printed.number) == (paper, comparison.table):
            measures = [column.split()[1] for column in printed.columns]
            for row, values in printed.rows.items():
                measured[row] = {m: v for m, v in zip(measures, values, strict=True) if v is not None}
    ours = measured[comparison.ours]["seconds"]
    return {
        name: {"times_slower": round(values["seconds"] / ours, 2)} | values if "seconds" in values else values
        for name, values in measured.items()
    }


def _timed(student: Student, texts: Sequence[Text], batches: int) -> tuple[dict[str, Any], list[list[Text]]]:
    """Return a student's size, and the batches to time."""
    sentences, size = student.encode(texts), quick_batch(student.model.encoder, student.device)
    tokens = tokens_per_row(sentences)
    timed = evenly(LengthSorted(sentences, size, seed=0).epoch(0), tokens, size, batches)
    student.logits(texts[:1])  # one-off work is not counted
    described = {
        "parameters": student.parameters(embeddings=False),
        "tokens_per_row": round(float(tokens.mean()), 1),
        "timed_rows": sum(map(len, timed)),
        "timed_tokens_per_row": round(float(tokens[np.concatenate(timed)].mean()), 1),
    }
    return described, [[texts[i] for i in batch] for batch in timed]


def _student(
    settings: StudentSettings, folder: Path, words: Sequence[str], *, pair: bool, device: torch.device
) -> Student:
    """Return a student with random weights."""
    if settings.reads == "words":
        tokenizer = build_tokenizer(words, lowercase=True)
        start = Start(tokenizer, tokenizer.get_vocab_size(), width=300)
    else:
        start = start_of(folder, settings, "random")
    model = start.build(settings, pair=pair, labels=["no", "yes"]).to(device).eval()
    attend_quickly(model, training=False)
    return Student(model, start.tokenizer, device)


def _rate(student: Student, batches: Sequence[Sequence[Text]]) -> float:
    """Return rows per second, from raw text to logits."""
    return sum(map(len, batches)) / seconds(lambda: [student.logits(texts) for texts in batches])


def _markdown(results: dict[str, Any], paper: str, counts: Sequence[int]) -> list[str]:
    comparison, published = COMPARISONS[paper], results["published"]
    rows = []
    for name, student in results["students"].items():
        printed = published.get(name, {})
        cells = [name, f"{student['parameters'] / 1e6:,.1f} M", _cell(printed.get("parameters"))]
        cells.append(f"{student['tokens_per_row']}")
        for threads in counts:
            timed = student[f"threads {threads}"]
            cells.append(spread(timed["seconds"], "{:,.1f}"))
            cells.append(f"{timed['times_slower']['median']:.2f}")
        rows.append([*cells, _cell(printed.get("times_slower"))])
    header = ["system", "parameters without embeddings", "in the paper (M)", "tokens a row"]
    for n in counts:
        line = f"{n} thread{'s' if n > 1 else ''}"
        header += [f"{line}, seconds", f"{line}, ÷ {comparison.ours}"]
    source = read_published()[0][paper]
    return [
        f"# Inference time, as in table {comparison.table} of {source['authors']} {source['year']}",
        "",
        f"Seconds for {results['data']}, extrapolated from {results['batches']} batches; device "
        f"{results['facts']['device']}. Random weights, float32. Median of "
        f"{results['facts']['repeats']} turns (lowest–highest).",
        "",
        *table([*header, f"paper, GPU, ÷ {comparison.ours}"], rows),
    ]


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


if __name__ == "__main__":
    typer.run(main)
