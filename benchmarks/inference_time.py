"""Inference time of the thesis' students, side by side (Liu 2020, section 4.4.3 and table 4.4).

Table 4.4 gives seconds for 100 batches of 128 pairs of QNLI's training set on a V100.  Here the
same architectures, in the sizes of profiles/mkd.yaml, answer the same number of pairs by the
project's own prediction: on one core, and on all.  Weights are random, since they do not change the
time; layers of BERT are built in their sizes.

    python benchmarks/inference_time.py --task qnli

Run it where the task is prepared (`dvc repro prepare@qnli`), on a machine that does nothing else.
Seconds include tokenization; its share is given.  An LSTM takes one thread whatever the machine
has, and pretrained layers take them all; batches are those of prediction too.  A slow student
answers a share of the pairs, and its seconds are extrapolated.  It writes
results/inference_time.{json,md}.
"""

import functools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import numpy as np
import torch
import typer
from frontier_rates import SHARE, SLOW
from harness import (
    RESULTS,
    facts,
    ratio,
    spread,
    summary,
    table,
    take_turns,
    usable_cores,
    write_results,
)

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.layout import Layout
from pipeline_lib.distillation.starts import Start, start_of
from pipeline_lib.params import StudentSettings, load_params
from pipeline_lib.storage.columns import Text
from pipeline_lib.storage.columns import texts as texts_of
from pipeline_lib.storage.shards import ShardSet
from pipeline_lib.students.student import Student, attend_quickly, predict_sentences
from pipeline_lib.students.vocabulary import build_tokenizer, count_words, select_words

PACKAGES = ("torch", "transformers", "tokenizers", "numpy")
BASE = {"width": 768, "heads": 12, "feedforward": 3072}
LARGE = {"width": 1024, "heads": 16, "feedforward": 4096}
OURS = "MKD-LSTM"
STUDENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "BERT-large (the thesis' teacher)": ("tiny", {"depth": 24, **LARGE}),
    "BERT-base": ("tiny", {"depth": 12, **BASE}),
    "BERT-PKD, 6 layers": ("tiny", {"depth": 6, **BASE}),
    "BERT-PKD, 3 layers": ("tiny", {"depth": 3, **BASE}),
    "MKD-Transformer, 3 layers": ("tiny", {"depth": 3, "pool": "mean", "classifier": 512, **BASE}),
    "TinyBERT, 4 layers of 312": ("tiny", {}),
    OURS: ("biattentive", {}),
    "Distilled BiLSTM": ("bilstm", {}),
}
"""By name in the results: the student of profiles/mkd.yaml, and what differs from it."""
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
    pairs: Annotated[int, typer.Option(min=SHARE, help="How many pairs are to be answered.")] = (
        12800
    ),
    model: Annotated[Path, typer.Option(help="Whose word pieces are read.")] = Path(
        "data/raw/models/minilm"
    ),
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each.")] = 3,
    device: Annotated[str, typer.Option(help="Of the students.")] = "cpu",
    params_file: Annotated[Path, typer.Option(help="Sizes.")] = Path("profiles/mkd.yaml"),
    seed: Annotated[int, typer.Option(help="Seed of the weights.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = RESULTS,
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
    found: dict[str, Any] = {}
    rates: dict[tuple[str, int], list[float]] = {}
    students = {}
    for name, (base, differs) in STUDENTS.items():
        own = settings[base].model_copy(update=differs)
        torch.manual_seed(seed)
        students[name] = _student(own, model, words, torch.device(device))
        found[name] = {
            "parameters": students[name].parameters(embeddings=False),
            "tokens_per_pair": round(float(students[name].encode(texts).lengths.mean()), 1),
        }
    for threads in counts:
        torch.set_num_threads(threads)
        turns = {}
        for name, student in students.items():
            sample = _sample(student, (texts * (1 + pairs // len(texts)))[:pairs])
            shares: list[float] = []
            turns[name] = functools.partial(_rate, student, sample, shares)
            found[name][f"threads {threads}"] = {"timed_pairs": len(sample), "shares": shares}
        for name, values in take_turns(turns, repeats).items():
            rates[name, threads] = values
    for (name, threads), values in rates.items():
        own = found[name][f"threads {threads}"]
        own["pairs_per_second"] = summary(values)
        own["seconds"] = summary([pairs / value for value in values], 2)
        own["tokenization"] = round(float(np.median(own.pop("shares"))), 3)
        own["seconds_divided_by_ours"] = ratio(rates[OURS, threads], values)
    results = {
        "facts": fact | {"seeds": {"weights": seed}, "repeats": repeats, "device": device},
        "data": f"{pairs:,} of the {len(texts):,} training pairs of {task}, again from the first",
        "pairs": pairs,
        "published_seconds": PUBLISHED,
        "students": found,
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


def _sample(student: Student, texts: list[Text]) -> list[Text]:
    """Return the texts to time, only a share if that takes long; what happens once is done."""
    share = texts[::SHARE]
    student.predict(share)
    return share if len(share) / _rate(student, share, []) > SLOW else texts


def _rate(student: Student, texts: Sequence[Text], shares: list[float]) -> float:
    """Return pairs per second; add which share of the time is tokenization."""
    start = time.perf_counter()
    sentences = student.encode(texts)
    tokenized = time.perf_counter()
    predict_sentences(student.model, sentences, student.device)
    end = time.perf_counter()
    shares.append((tokenized - start) / (end - start))
    return len(texts) / (end - start)


def _markdown(results: dict[str, Any], counts: Sequence[int]) -> list[str]:
    published = results["published_seconds"]
    rows = []
    for name, own in results["students"].items():
        cells = [name, f"{own['parameters'] / 1e6:,.1f} M", f"{own['tokens_per_pair']}"]
        for threads in counts:
            timed = own[f"threads {threads}"]
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
        f"{results['data']}; device {results['facts']['device']}. Random weights, float32. Median "
        f"of {results['facts']['repeats']} turns (lowest–highest); one who takes more than {SLOW} "
        f"seconds for one pair in {SHARE} answers only those, and the seconds are extrapolated.",
        "",
        *table([*header, "thesis, V100, ÷ MKD-LSTM"], rows),
    ]


if __name__ == "__main__":
    typer.run(main)
