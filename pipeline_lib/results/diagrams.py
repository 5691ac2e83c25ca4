"""Data for diagrams of a task's held-out predictions: reliability, and confusion matrices.

Read from ``predictions.arrow``.  Figures are computed for each seed and averaged.
"""

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
    known = {n: parts for n, parts in outputs.items() if all(answered(p).any() for p in parts)}
    return label_array(table["label"]), known


def reliability_of(
    labels: np.ndarray, outputs: Mapping[str, list[np.ndarray]], kind: str
) -> dict[str, dict[str, list[float]]]:
    """Return, by system, its predictions against the truth: see :meth:`~pipeline_lib.base.kinds.kind.TaskKind.bins`."""
    bins = KINDS[kind].bins
    return {system: _mean_bins([_kept(labels, output, bins) for output in parts]) for system, parts in outputs.items()}


def _kept(labels: np.ndarray, outputs: np.ndarray, bins: Any) -> Any:
    known = answered(outputs)
    return bins(labels[known], outputs[known])


def _mean_bins(bins: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, list[float]]:
    means = [np.mean(side, axis=0).round(6).tolist() for side in zip(*bins, strict=True)]
    return dict(zip(("predicted", "observed"), means, strict=True))


def label_table(title: str, labels: np.ndarray, outputs: Mapping[str, list[np.ndarray]], names: list[str]) -> Table:
    """Return each label's rows, and every system's F1 of it, averaged over seeds.

    :param labels: 0 or 1, (rows, labels).
    """
    counts = [f"{int(count):,}" for count in labels.sum(axis=0, dtype=np.int64)]
    scored = [np.mean([_f1_by_label(labels, one) for one in parts], axis=0) for parts in outputs.values()]
    cells = [[percent(value) for value in values] for values in scored]
    lines = [list(line) for line in zip(names, counts, *cells, strict=True)]
    return Table(title, ["Label", "Rows", *outputs], lines)


def _f1_by_label(labels: np.ndarray, outputs: np.ndarray) -> list[float]:
    known = answered(outputs)
    pairs = zip(labels[known].T, outputs[known].T, strict=True)
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
                _counted(actual, answers, answered(output), len(names))
                for answers, output in zip(parts, outputs[system], strict=True)
            ],
            axis=0,
        )
        for system, parts in predicted.items()
    }
    kept = _kept_classes(list(counts.values()), len(names))
    left_out = len(names) - len(kept)
    merged = {system: _merged(confusion, kept) for system, confusion in counts.items()}
    shown = [names[number] for number in kept] + ([OTHERS] if left_out else [])
    return {
        "names": shown,
        "left_out": left_out,
        "counts": {system: confusion.round(2).tolist() for system, confusion in merged.items()},
    }


def _counted(actual: np.ndarray, answers: np.ndarray, known: np.ndarray, classes: int) -> np.ndarray:
    flat = np.bincount(actual[known] * classes + answers[known], minlength=classes * classes)
    return flat.reshape(classes, classes).astype(np.float64)


def _kept_classes(counts: list[np.ndarray], classes: int) -> list[int]:
    if classes <= MAX_CLASSES:
        return list(range(classes))
    total = np.sum(counts, axis=0)
    mistaken = total.sum(axis=0) + total.sum(axis=1) - 2 * np.diag(total)
    return sorted(np.argsort(-mistaken, kind="stable")[: MAX_CLASSES - 1].tolist())


def _merged(counts: np.ndarray, kept: list[int]) -> np.ndarray:
    """Return the counts of the kept classes, with the others summed as the last."""
    if len(kept) == len(counts):
        return counts
    positions = np.full(len(counts), len(kept))
    positions[kept] = np.arange(len(kept))
    merged = np.zeros((len(kept) + 1, len(kept) + 1))
    np.add.at(merged, (positions[:, None], positions[None, :]), counts)
    return merged
