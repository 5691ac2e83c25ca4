"""Accuracy against speed on one task: our students, model2vec, a TF-IDF regression, the teacher.

All are timed from raw text to class in one run, on one thread, taking turns.  The peers are those of frontier.py:
model2vec distilled from the same fine-tuned teacher and trained on the same labels, and scikit-learn's regression on
the same labels, both tuned on dev (not yet in the results stored here).  Accuracy is on test if it is labelled,
which was not used for any selection; a student's is the mean over its seeds.

    pip install 'model2vec[distill,train]==0.10.0' python benchmarks/accuracy_speed.py --task sst2

Run it in a workspace where `dvc repro` has finished the task and methods
(benchmarks/sst2_rows.yaml).  It writes results/accuracy_speed.json and .png.
"""

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

import typer
from frontier import draw
from frontier_systems import Rows, System, peer
from harness import (
    RESULTS,
    Out,
    Repeats,
    absent,
    facts,
    optional,
    rate,
    spread,
    summary,
    table,
    take_turns,
    write_results,
)

from pipeline_lib.base.layout import Layout
from pipeline_lib.params import load_params
from pipeline_lib.results.schema import TaskScores

PEERS = ("model2vec", "TF-IDF regression")


def main(
    task: Annotated[str, typer.Option(help="A single-sentence task of params.yaml.")] = "sst2",
    seed: Annotated[int, typer.Option(help="The students' seed.")] = 1,
    sentences: Annotated[int, typer.Option(help="How many sentences to time.")] = 4000,
    repeats: Repeats = 5,
    work: Annotated[Path, typer.Option(help="Where trained peers are kept.")] = Path("data/accuracy_speed"),
    out: Out = RESULTS,
) -> None:
    """Measure accuracy and speed of every system, in one run."""
    import torch

    torch.set_num_threads(1)
    scores = TaskScores.read(Layout().scores(task))
    split = scores.decisive_split
    train, scored = (Rows.of(task, name) for name in ("train", split))
    sample = (train.texts * (1 + sentences // len(train.texts)))[:sentences]
    start = facts(("torch", "transformers", "model2vec", "scikit-learn"), 1, 1)
    systems, failed = _systems(task, seed, train, work / task)
    predict = {system.name: system.load() for system in systems}
    accuracy = {
        name: float((shares(scored.texts).argmax(1) == scored.labels).mean()) for name, shares in predict.items()
    }
    accuracy |= {n: method.scores[split]["accuracy"].mean for n, method in scores.methods.items()}
    # The teacher is so much slower that a part of the sentences is enough.
    rows = {name: sample[:: 8 if name == "teacher" else 1] for name in predict}
    rates = take_turns({n: partial(rate, predict[n], rows[n]) for n in predict}, repeats)
    measured = {n: {"accuracy": accuracy[n], "rates": summary(rates[n])} for n in predict}
    results = {"facts": start, "task": task, "seed": seed, "sentences": sentences}
    results |= {"split": split, "scored": len(scored.texts), "systems": measured, "failed": failed}
    write_results("accuracy_speed", results, _lines(results), out)
    _plot(results, out / "accuracy_speed.png")


def _systems(task: str, seed: int, train: Rows, work: Path) -> tuple[list[System], dict[str, str]]:
    """Return every system that could be built, and why the others could not."""
    params, layout = load_params(), Layout()
    teacher = layout.teacher(task, next(iter(params.teachers_of(task))))
    systems, failed = [System("teacher", "teacher", str(teacher), 1)], {}
    for method in params.methods_of(task):
        systems.append(System(method, "student", str(layout.student(task, method, seed)), seed))
    dev = Rows.of(task, "dev")
    for name in PEERS:
        with optional(name, failed):
            systems.append(peer(name, seed, train, dev, work))
    return systems, failed


def _lines(results: dict[str, Any]) -> list[str]:
    rows = sorted(results["systems"].items(), key=lambda item: -item[1]["rates"]["median"])
    cells = [(n, f"{100 * s['accuracy']:.1f}", spread(s["rates"])) for n, s in rows]
    return [
        f"# Accuracy against speed: {results['task']}",
        "",
        f"Accuracy in percent on {results['scored']:,} sentences of {results['split']}, a "
        "student's the mean over its seeds; sentences per second from raw text to class, one "
        f"thread, median (lowest–highest) of the turns, students of seed {results['seed']}.",
        "",
        *table(["system", "accuracy", "sentences/s"], cells),
        *absent(results["failed"]),
    ]


def _plot(results: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(7.2, 4.5), layout="constrained")
    points = {
        name: [(system["rates"]["median"], 100 * system["accuracy"])] for name, system in results["systems"].items()
    }
    draw(axes, points)
    axes.set_xlabel("sentences per second, one thread")
    axes.set_ylabel(f"accuracy on {results['split']} (%)")
    axes.set_title(f"Accuracy against speed: {results['task']}")
    drawing.savefig(path, dpi=150)


if __name__ == "__main__":
    typer.run(main)
