"""Data for diagrams of a task's held-out predictions, averaged over seeds: reliability, and confusion matrices."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.kinds import KINDS, label_array, score
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.seals import check_sealed
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.results.table import Table, percent
from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.shard_sets import read_shard

MAX_CLASSES = 12
"""If there are more, those with the most errors are shown, and the others merged into one."""
OTHERS = "(others)"


def read_predictions(layout: Layout, task: str, split: str) -> pa.Table:
    """Return the predictions of all systems on one split; see ``predictions_table``."""
    check_sealed(layout.predictions(task))
    table = read_shard(layout.predictions(task))
    return table.filter(pc.equal(table["split"], split))


def read_outputs(
    layout: Layout, task: str, scores: TaskScores
) -> tuple[np.ndarray, dict[str, list[np.ndarray]]] | None:
    """Return the labels of the decisive split, and each system's outputs: one array per seed.

    Students' logits are divided by their temperatures, as they are scored.

    :returns: labels (rows,), and by system float (rows, outputs); None if nothing is labelled.
    """
    if not scores.scored_splits:
        return None
    table = read_predictions(layout, task, scores.decisive_split)
    outputs = {f"teacher {name}": [matrix(table[name])] for name in scores.teachers}
    for name, method in scores.methods.items():
        temperatures = method.details.temperature or {}
        outputs[name] = [
            matrix(table[f"{name}-{seed}"]) / temperatures.get(seed, 1.0) for seed in method.training.best_step
        ]
    answering = {name: seeds for name, seeds in outputs.items() if all(answered(seed).any() for seed in seeds)}
    return label_array(table["label"]), answering


def _answered(labels: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = answered(outputs)
    return labels[rows], outputs[rows]


def reliability_of(
    labels: np.ndarray, outputs: Mapping[str, list[np.ndarray]], kind: str
) -> dict[str, dict[str, list[float]]]:
    """Return, by system, its predictions against the truth: see :meth:`~pipeline_lib.base.kinds.kind.TaskKind.bins`."""
    means = {
        system: np.mean([KINDS[kind].bins(*_answered(labels, seed)) for seed in seeds], axis=0).round(6)
        for system, seeds in outputs.items()
    }
    return {system: {"predicted": p.tolist(), "observed": o.tolist()} for system, (p, o) in means.items()}


def label_table(title: str, labels: np.ndarray, outputs: Mapping[str, list[np.ndarray]], names: list[str]) -> Table:
    """Return each label's rows, and every system's F1 of it, averaged over seeds.

    :param labels: 0 or 1, (rows, labels).
    """
    counts = [f"{int(count):,}" for count in labels.sum(axis=0, dtype=np.int64)]
    scored = [np.mean([_f1_by_label(*_answered(labels, seed)) for seed in seeds], axis=0) for seeds in outputs.values()]
    lines = [list(line) for line in zip(names, counts, *(map(percent, values) for values in scored), strict=True)]
    return Table(title, ["Label", "Rows", *outputs], lines)


def _f1_by_label(labels: np.ndarray, outputs: np.ndarray) -> list[float]:
    pairs = zip(labels.T, outputs.T, strict=True)
    return [score("f1_macro", marks[:, None], values[:, None]) for marks, values in pairs]


def confusion_of(
    labels: np.ndarray, outputs: Mapping[str, list[np.ndarray]], names: list[str], kind: str
) -> dict[str, Any]:
    """Return how often each label got each answer, averaged over seeds.

    :returns: ``names`` of classes or ranges, ``left_out``: how many classes :data:`OTHERS` merges,
        and ``counts`` by system: float, [label][answer].
    """
    names, actual, predicted = KINDS[kind].cells(labels, outputs, names)
    counts = {
        system: np.mean(
            [
                _counted(actual[rows], answers[rows], len(names))
                for answers, rows in zip(seeds, map(answered, outputs[system]), strict=True)
            ],
            axis=0,
        )
        for system, seeds in predicted.items()
    }
    shown = _most_mistaken(list(counts.values()), len(names))
    left_out = len(names) - len(shown)
    return {
        "names": [names[number] for number in shown] + ([OTHERS] if left_out else []),
        "left_out": left_out,
        "counts": {system: _merged(confusion, shown).round(2).tolist() for system, confusion in counts.items()},
    }


def _counted(actual: np.ndarray, answers: np.ndarray, classes: int) -> np.ndarray:
    flat = np.bincount(actual * classes + answers, minlength=classes * classes)
    return flat.reshape(classes, classes).astype(np.float64)


def _most_mistaken(counts: list[np.ndarray], classes: int) -> list[int]:
    if classes <= MAX_CLASSES:
        return list(range(classes))
    total = np.sum(counts, axis=0)
    mistaken = total.sum(axis=0) + total.sum(axis=1) - 2 * np.diag(total)
    return sorted(np.argsort(-mistaken, kind="stable")[: MAX_CLASSES - 1].tolist())


def _merged(counts: np.ndarray, shown: list[int]) -> np.ndarray:
    """Return the counts of the classes that are shown, with the others, if any, summed as the last."""
    positions = np.full(len(counts), len(shown))
    positions[shown] = np.arange(len(shown))
    size = min(len(shown) + 1, len(counts))
    merged = np.zeros((size, size))
    np.add.at(merged, (positions[:, None], positions[None, :]), counts)
    return merged
