"""Inference time of the thesis' students, side by side (Liu 2020, section 4.4.3 and table 4.4).

Table 4.4 gives seconds for 100 batches of 128 pairs of QNLI's training set on a V100.  Here the
same architectures, in the sizes of profiles/thesis_mkd.yaml, answer the same number of pairs by the
project's own prediction: on one core, and on all.  Weights are random, since they do not change the
time; layers of BERT are built in their sizes.

    python benchmarks/inference_time.py --task qnli

Run it where the task is prepared (with glue_base.yaml: `dvc repro prepare@qnli fetch_models`), on a
machine that does nothing else.
Seconds are from raw text, and are extrapolated: of the batches of similar length that prediction
makes of all pairs, a few are timed, evenly from the shortest to the longest.  An LSTM takes one
thread and batches of 256 whatever the machine has; layers of BERT take all threads and batches of
32.  It writes results/inference_time.{json,md}.
"""

import functools
import os
from collections.abc import Callable, Sequence
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

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.text import Text
from pipeline_lib.base.threads import usable_cores
from pipeline_lib.models.students.student import Student, attend_quickly, quick_batch
from pipeline_lib.models.students.vocabulary import build_tokenizer, count_words, select_words
from pipeline_lib.params import StudentSettings, load_params
from pipeline_lib.shards.columns import texts as texts_of
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.training.distillation.initialisation import Start, start_of

PACKAGES = ("torch", "transformers", "tokenizers", "numpy")
BASE = {"width": 768, "heads": 12, "feedforward": 3072}
OURS = "MKD-LSTM"
STUDENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "BERT-base": ("tiny", {"depth": 12, **BASE}),
    "BERT-PKD, 6 layers": ("tiny", {"depth": 6, **BASE}),
    "BERT-PKD, 3 layers": ("tiny", {"depth": 3, **BASE}),
    "MKD-Transformer, 3 layers": ("tiny", {"depth": 3, "pool": "mean", "classifier": 512, **BASE}),
    "TinyBERT, 4 layers of 312": ("tiny", {}),
    OURS: ("biattentive", {}),
    "Distilled BiLSTM": ("bilstm", {}),
}
"""By name in the results: the student of profiles/thesis_mkd.yaml, and what differs from it."""
PUBLISHED = {
    "BERT-PKD, 3 layers": 8.41,
    "TinyBERT, 4 layers of 312": 3.68,
    OURS: 2.93,
    "Distilled BiLSTM": 1.36,
}
"""Seconds, from table 4.4; BERT-PKD there has three layers (section 4.3.3)."""


def main(
    task: Annotated[str, typer.Option(help="Prepared task of pairs to take the texts from.")] = (
        "qnli"
    ),
    pairs: Annotated[int, typer.Option(min=1, help="How many pairs the seconds are for.")] = 12800,
    batches: Annotated[int, typer.Option(min=1, help="Batches to time.")] = 6,
    model: Annotated[Path, typer.Option(help="Whose word pieces are read.")] = Path(
        "data/raw/models/minilm"
    ),
    repeats: Repeats = 3,
    device: Annotated[str, typer.Option(help="Of the students.")] = "cpu",
    params_file: Annotated[Path, typer.Option(help="Sizes.")] = Path("profiles/thesis_mkd.yaml"),
    seed: Annotated[int, typer.Option(help="Seed of the weights.")] = 1,
    out: Out = RESULTS,
) -> None:
    """Measure and write the results."""
    cores = usable_cores()
    counts = sorted({1, cores}) if device == "cpu" else [cores]
    fact = facts(PACKAGES, cores, " and ".join(map(str, counts)))
    rows = ShardSet.open(Layout().task(task) / "train").table()
    texts = texts_of(rows)
    if not isinstance(texts[0], tuple):
        raise DistilleryError(f"{task}: not a task of pairs. Give one with --task.")
    words = select_words(count_words([rows]), 1)
    settings = load_params(params_file).students
    students: dict[str, Any] = {}
    turns: dict[str, Callable[[], float]] = {}
    for name, (base, differs) in STUDENTS.items():
        torch.manual_seed(seed)
        sizes = settings[base].model_copy(update=differs)
        student = _student(sizes, model, words, torch.device(device))
        sentences, size = student.encode(texts), quick_batch(student.model.encoder, student.device)
        tokens = tokens_per_row(sentences)
        timed = evenly(LengthSorted(sentences, size, seed=0).epoch(0), tokens, size, batches)
        turns[name] = functools.partial(
            _rate, student, [[texts[i] for i in rows] for rows in timed]
        )
        students[name] = {
            "parameters": student.parameters(embeddings=False),
            "tokens_per_pair": round(float(tokens.mean()), 1),
            "timed_pairs": sum(map(len, timed)),
            "timed_tokens_per_pair": round(float(tokens[np.concatenate(timed)].mean()), 1),
        }
        student.logits(texts[:1])  # one-off work is not counted
    for threads in counts:
        torch.set_num_threads(threads)
        rates = take_turns(turns, repeats)
        for name, values in rates.items():
            students[name][f"threads {threads}"] = {
                "pairs_per_second": summary(values),
                "seconds": summary([pairs / value for value in values], 2),
                "seconds_divided_by_ours": ratio(rates[OURS], values),
            }
    results = {
        "facts": fact | {"seeds": {"weights": seed}, "repeats": repeats, "device": device},
        "data": f"{pairs:,} pairs like the {len(texts):,} training pairs of {task}",
        "batches": batches,
        "published_seconds": PUBLISHED,
        "students": students,
    }
    write_results("inference_time", results, _markdown(results, counts), out)


def _student(
    settings: StudentSettings, folder: Path, words: Sequence[str], device: torch.device
) -> Student:
    """Return a student of pairs with random weights."""
    if settings.reads == "words":
        tokenizer = build_tokenizer(words, lowercase=True)
        start = Start(tokenizer, tokenizer.get_vocab_size(), width=300)
    else:
        start = start_of(folder, settings, "random")
    model = start.build(settings, pair=True, labels=["no", "yes"]).to(device).eval()
    attend_quickly(model, training=False)
    return Student(model, start.tokenizer, device)


def _rate(student: Student, batches: Sequence[Sequence[Text]]) -> float:
    """Return pairs per second, from raw text to logits."""
    return sum(map(len, batches)) / seconds(lambda: [student.logits(texts) for texts in batches])


def _markdown(results: dict[str, Any], counts: Sequence[int]) -> list[str]:
    published = results["published_seconds"]
    rows = []
    for name, student in results["students"].items():
        cells = [name, f"{student['parameters'] / 1e6:,.1f} M", f"{student['tokens_per_pair']}"]
        for threads in counts:
            timed = student[f"threads {threads}"]
            cells.append(spread(timed["seconds"], "{:,.1f}"))
            cells.append(f"{timed['seconds_divided_by_ours']['median']:.2f}")
        seconds = published.get(name)
        cells.append(f"{seconds / published[OURS]:.2f}" if seconds else "")
        rows.append(cells)
    lines = [f"{n} thread{'s' if n > 1 else ''}" for n in counts]
    columns: list[Callable[[str], str]] = ["{}, seconds".format, "{}, ÷ MKD-LSTM".format]
    header = ["student", "parameters without embeddings", "tokens a pair"]
    header += [column(line) for line in lines for column in columns]
    return [
        "# Inference time, as in table 4.4 of Liu 2020",
        "",
        f"Seconds for {results['data']}, extrapolated from {results['batches']} batches; device "
        f"{results['facts']['device']}. Random weights, float32. Median of "
        f"{results['facts']['repeats']} turns (lowest–highest).",
        "",
        *table([*header, "thesis, V100, ÷ MKD-LSTM"], rows),
    ]


if __name__ == "__main__":
    typer.run(main)
