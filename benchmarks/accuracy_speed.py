"""Accuracy against speed on one task: our students, model2vec, a TF-IDF regression, the teacher.

All are timed from raw text to class in one run, on one thread, taking turns; model2vec is distilled
from the same fine-tuned teacher and trained on the same labels, scikit-learn's regression on the
same labels.  Accuracy is on test if it is labelled, which was not used for any selection; a
student's is the mean over its seeds.

    pip install 'model2vec[distill,train]==0.10.0'
    python benchmarks/accuracy_speed.py --task sst2

Run it in a workspace where `dvc repro` has finished the task and methods
(benchmarks/sst2_rows.yaml).  It writes results/accuracy_speed.json, .md and .png.
"""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

import numpy as np
import typer
from harness import RESULTS, facts, reason, say, spread, summary, table, take_turns, write_results

from pipeline_lib.base.layout import Layout
from pipeline_lib.params import load_params
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.shards.shard_sets import ShardSet

Predict = Callable[[Sequence[str]], np.ndarray]
PEERS = ("model2vec", "TF-IDF regression")


def main(
    task: Annotated[str, typer.Option(help="A single-sentence task of params.yaml.")] = "sst2",
    seed: Annotated[int, typer.Option(help="The students' seed.")] = 1,
    sentences: Annotated[int, typer.Option(help="How many sentences to time.")] = 4000,
    repeats: Annotated[int, typer.Option(help="Turns of each.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = RESULTS,
) -> None:
    """Measure accuracy and speed of every system, in one run."""
    import torch

    torch.set_num_threads(1)
    scores = TaskScores.read(Layout().scores(task))
    split = scores.decisive_split
    train, scored = (_rows(task, name) for name in ("train", split))
    sample = (train[0] * (1 + sentences // len(train[0])))[:sentences]
    start = facts(("torch", "transformers", "model2vec", "scikit-learn"), 1, 1)
    systems, failed = _systems(task, seed, train)
    accuracy = {name: float((p(scored[0]) == scored[1]).mean()) for name, p in systems.items()}
    accuracy |= {n: method.scores[split]["accuracy"].mean for n, method in scores.methods.items()}
    turns = {name: _timed(predict, _share(name, sample)) for name, predict in systems.items()}
    rates = take_turns(turns, repeats)
    measured = {n: {"accuracy": accuracy[n], "rates": summary(rates[n])} for n in systems}
    results = {"facts": start, "task": task, "seed": seed, "sentences": sentences}
    results |= {"split": split, "scored": len(scored[0]), "systems": measured, "failed": failed}
    write_results("accuracy_speed", results, _lines(results), out)
    _plot(results, out / "accuracy_speed.png")


def _rows(task: str, split: str) -> tuple[list[str], np.ndarray]:
    rows = ShardSet.open(Path("data/tasks") / task / split).table()
    return rows["text"].to_pylist(), rows["label"].to_numpy()


def _share(name: str, sample: list[str]) -> list[str]:
    # The teacher is so much slower that a part of the sentences is enough.
    return sample[:: 8 if name == "teacher" else 1]


def _timed(predict: Predict, sample: list[str]) -> Callable[[], float]:
    def measure() -> float:
        start = time.perf_counter()
        predict(sample)
        return len(sample) / (time.perf_counter() - start)

    return measure


def _systems(
    task: str, seed: int, train: tuple[list[str], np.ndarray]
) -> tuple[dict[str, Predict], dict[str, str]]:
    """Return every system that could be built, and why the others could not."""
    systems: dict[str, Predict] = {"teacher": _teacher(task)}
    for method in load_params().methods_of(task):
        systems[method] = _student(Path("data/students") / task / method / str(seed))
    failed = {}
    for name, make in zip(PEERS, (_model2vec, _tfidf), strict=True):
        try:
            systems[name] = make(task, seed, train)
        except (ImportError, RuntimeError, ValueError, TypeError, OSError) as error:
            failed[name] = reason(error)
            say(f"{name}: {failed[name]}")
    return systems, failed


def _teacher(task: str) -> Predict:
    from pipeline_lib.base.devices import resolve_batch_tokens, resolve_precision
    from pipeline_lib.models.teacher import load_teacher

    params = load_params()
    name, settings = next(iter(params.teachers_of(task).items()))
    precision = resolve_precision("auto", _cpu())
    teacher = load_teacher(Layout().teacher(task, name), "cpu", precision)
    tokens, length = resolve_batch_tokens(None, _cpu()), settings.max_length
    return lambda texts: teacher.predict(list(texts), length, tokens).argmax(1)


def _cpu() -> Any:
    import torch

    return torch.device("cpu")


def _student(folder: Path) -> Predict:
    from pipeline_lib.models.students.student import load_student

    student = load_student(folder)
    return lambda texts: student.logits(list(texts)).argmax(1)


def _model2vec(task: str, seed: int, train: tuple[list[str], np.ndarray]) -> Predict:
    """Return model2vec's classifier: vectors distilled from the teacher, then trained on labels."""
    from model2vec.distill import distill
    from model2vec.train import StaticModelForClassification

    static = distill(model_name=str(Path("data/teachers") / task), pca_dims=256)
    classifier = StaticModelForClassification.from_static_model(model=static)
    classifier.fit(train[0], train[1].tolist(), device="cpu")
    whole = classifier.to_pipeline()
    return lambda texts: np.asarray(whole.predict(list(texts)))


def _tfidf(task: str, seed: int, train: tuple[list[str], np.ndarray]) -> Predict:
    """Return scikit-learn's usual baseline: TF-IDF of words and bigrams, logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    features = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    model = make_pipeline(features, LogisticRegression(max_iter=1000, C=10.0, random_state=seed))
    return model.fit(train[0], train[1]).predict


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
        *[f"\n{name} did not run: {why}" for name, why in results["failed"].items()],
    ]


def _plot(results: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(7.2, 4.5), layout="constrained")
    for name, system in results["systems"].items():
        point = system["rates"]["median"], 100 * system["accuracy"]
        peer = name in PEERS
        color = "tab:red" if peer else "black" if name == "teacher" else "tab:blue"
        axes.plot(*point, "s" if peer else "o", color=color)
        axes.annotate(name, point, xytext=(5, 4), textcoords="offset points", fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel("sentences per second, one thread")
    axes.set_ylabel(f"accuracy on {results['split']} (%)")
    axes.set_title(f"Accuracy against speed: {results['task']}")
    axes.margins(x=0.15)
    axes.grid(alpha=0.3)
    drawing.savefig(path, dpi=150)


if __name__ == "__main__":
    typer.run(main)
