"""The frontier: accuracy and calibration against speed from raw text and size on disk, in one run.

The teacher in torch, ONNX and ONNX int8; every student in torch, ONNX, int8 and, where it has that form, numpy; and
on the same splits the usual alternatives: fastText, a TF-IDF regression, model2vec (distilled from the same teacher,
then trained), SetFit (on the teacher's model).  Peers are tuned on dev, and test is not used for any selection.
SetFit's contrastive steps are capped (frontier_systems.py).

    pip install 'potstill[onnx]' 'model2vec[distill,train]==0.10.0' setfit==1.2.0 pip install fasttext-wheel==0.9.2
    pip install transformers==5.23.0 tokenizers==0.23.3    # model2vec brings older ones distill profile use
    benchmarks/frontier.yaml && dvc repro python benchmarks/frontier.py

Sentences, or pairs, per second include tokenization, and are measured in two separate processes: one limited to one
core and one thread, one free to use all.  It writes results/frontier.json and .png.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from frontier_rates import environment
from frontier_systems import PEERS, Rows, System, ours, peer
from harness import RESULTS, Name, Out, Repeats, absent, facts, optional, say, spread, table, write_results

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.params import load_params

PACKAGES = ("torch", "transformers", "onnxruntime", "numpy", "scikit-learn", "fasttext-wheel", "model2vec", "setfit")


def main(
    tasks: Annotated[list[str] | None, typer.Option("--task", help="Classifications; by default all.")] = None,
    sentences: Annotated[int, typer.Option(help="How many sentences to time.")] = 4000,
    repeats: Repeats = 5,
    name: Name = "frontier",
    work: Annotated[Path, typer.Option(help="Where trained peers and exports are kept.")] = Path("data/frontier"),
    out: Out = RESULTS,
) -> None:
    """Build, score and time every system of every task."""
    results: dict[str, Any] = {"facts": facts(PACKAGES, usable_cores(), "1 and all"), "tasks": {}}
    for task in tasks or list(load_params().tasks):
        train, dev, test = (Rows.of(task, split) for split in ("train", "dev", "test"))
        systems, failed = _make(task, train, dev, work / task)
        scored = _scored(systems, test)
        sample = (test.texts * (1 + sentences // len(test.texts)))[:sentences]
        for cores in (1, usable_cores()):
            for system, rates in _timed(systems, sample, cores, repeats, work / task).items():
                scored[system][f"rates_{cores}"] = rates
        results["tasks"][task] = {
            "systems": scored,
            "failed": failed,
            "rows": {"train": len(train.texts), "test": len(test.texts)},
            "unit": "sentences" if isinstance(sample[0], str) else "pairs",
        }
    write_results(name, results, _lines(results), out)
    _plot(results, out / f"{name}.png")


def _make(task: str, train: Rows, dev: Rows, work: Path) -> tuple[list[System], dict[str, str]]:
    """Return every system that could be built, and why the others could not."""
    seeds = load_params().seeds
    systems, failed = list(ours(task, seeds, work)), {}
    for name in PEERS:
        with optional(name, failed):
            # SetFit takes many minutes for each.
            peer_seeds = seeds[:1] if name == "SetFit" else seeds
            systems += [peer(name, seed, train, dev, work) for seed in peer_seeds]
    return systems, failed


def _scored(systems: Sequence[System], test: Rows) -> dict[str, dict[str, Any]]:
    """Return accuracy, likelihood and calibration of each system, over its seeds, and its size."""
    scores: dict[str, list[dict[str, float]]] = {}
    sizes: dict[str, int] = {}
    for system in systems:
        shares = system.load()(test.texts)
        logits = np.log(np.clip(shares, 1e-12, None))
        measures = {"accuracy": float((shares.argmax(1) == test.labels).mean())}
        measures |= {key: KINDS["classification"].details(test.labels, logits)[key] for key in ("nll", "ece")}
        scores.setdefault(system.name, []).append(measures)
        sizes[system.name] = system.bytes()
        say(f"{system.name}, seed {system.seed}: {100 * measures['accuracy']:.1f}")
    return {name: _over_seeds(all_) | {"bytes": sizes[name]} for name, all_ in scores.items()}


def _over_seeds(scores: Sequence[dict[str, float]]) -> dict[str, Any]:
    record: dict[str, Any] = {"seeds": len(scores)}
    for key in scores[0]:
        values = [one[key] for one in scores]
        record[key] = float(np.mean(values))
        record[f"{key}_sd"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return record


def _timed(
    systems: Sequence[System], sample: list[str], cores: int, repeats: int, work: Path
) -> dict[str, dict[str, float]]:
    """Time the first seed of each system in a process with this many cores."""
    first = {system.name: system for system in reversed(systems)}
    job = {"systems": [asdict(s) for s in first.values()], "sample": sample, "repeats": repeats}
    asked, answer = work / f"timing_{cores}.json", work / f"rates_{cores}.json"
    asked.write_text(json.dumps(job), "utf-8")
    program = Path(__file__).with_name("frontier_rates.py")
    command = [sys.executable, program, asked, answer, str(cores)]
    subprocess.run(command, check=True, env=environment(cores))
    return json.loads(answer.read_text("utf-8"))


def _lines(results: dict[str, Any]) -> list[str]:
    lines = ["# Accuracy and calibration against speed and size", ""]
    cores = results["facts"]["cores"]
    for task, task_results in results["tasks"].items():
        rows = task_results["rows"]
        lines += [
            f"## {task}: {rows['train']:,} rows to train on, {rows['test']:,} of test",
            "",
            "Accuracy, negative log-likelihood (nats) and expected calibration error (points) on test, mean ± "
            f"standard deviation over the seeds; {task_results['unit']} per second from raw text to probabilities, "
            "median (lowest–highest) of the turns; what is deployed, in MB.",
            "",
            *table(
                ("system", "accuracy", "NLL", "ECE", "1 core", f"{cores} cores", "MB"),
                [_row(name, system, cores) for name, system in _by_rate(task_results["systems"])],
            ),
            *absent(task_results["failed"]),
            "",
        ]
    return lines[:-1]


def _by_rate(systems: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(systems.items(), key=lambda item: -item[1]["rates_1"]["median"])


def _row(name: str, system: dict[str, Any], cores: int) -> tuple[str, ...]:
    return (
        name,
        _figure(system, "accuracy", 100, 1),
        _figure(system, "nll", 1, 3),
        _figure(system, "ece", 100, 1),
        spread(system["rates_1"]),
        spread(system[f"rates_{cores}"]),
        f"{system['bytes'] / 1e6:.1f}",
    )


def _figure(system: dict[str, Any], key: str, factor: int, digits: int) -> str:
    mean, deviation = system[key], system[f"{key}_sd"]
    text = f"{factor * mean:.{digits}f}"
    return text if deviation is None else f"{text} ± {factor * deviation:.{digits}f}"


def _plot(results: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    count = len(results["tasks"])
    drawing, panels = pyplot.subplots(
        1, count, figsize=(7.2 * count, 5.5), layout="constrained", sharey=True, squeeze=False
    )
    for axes, (task, task_results) in zip(panels[0], results["tasks"].items(), strict=True):
        draw(axes, _by_system(task_results["systems"]))
        axes.set_xlabel(f"{task_results['unit']} per second from raw text, one core")
        axes.set_ylabel("accuracy on test (%)")
        axes.set_title(f"{task}: {task_results['rows']['train']:,} training rows")
    drawing.savefig(path, dpi=130)


def draw(axes: Any, curves: dict[str, list[tuple[float, float]]]) -> None:
    """Draw each system's forms by (rate, accuracy): the teacher black, peers red, ours blue."""
    labelled: list[tuple[float, float]] = []
    for name, points in curves.items():
        color = "tab:red" if name in PEERS else "black" if name == "teacher" else "tab:blue"
        axes.plot(*zip(*points, strict=True), "o-", color=color, markersize=4)
        crowded = sum(_near(points[-1], point) for point in labelled)
        labelled.append(points[-1])
        below = (5, 4 - 9 * crowded)
        axes.annotate(name, points[-1], xytext=below, textcoords="offset points", fontsize=8)
    axes.set_xscale("log")
    axes.margins(x=0.2)
    axes.grid(alpha=0.3)


def _near(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether the labels of two (rate, accuracy) would overlap."""
    return 0.4 < one[0] / other[0] < 2.5 and abs(one[1] - other[1]) < 0.4


def _by_system(systems: dict[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """Return rate and accuracy of each system's forms, slowest first; most accurate systems first.

    In this order the labels of crowded systems can be set one below another.
    """
    curves: dict[str, list[tuple[float, float]]] = {}
    for name, system in systems.items():
        point = system["rates_1"]["median"], 100 * system["accuracy"]
        curves.setdefault(name.partition(",")[0], []).append(point)
    ordered = {name: sorted(points) for name, points in curves.items()}
    return dict(sorted(ordered.items(), key=lambda item: -item[1][-1][1]))


if __name__ == "__main__":
    typer.run(main)
