"""Whether a teacher's answers belong to their texts, by a task's labels."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS, Classes, label_array, score
from pipeline_lib.outputs.files.gathering import check_weights
from pipeline_lib.outputs.files.keyed_table import KeyedTable, row_keys
from pipeline_lib.outputs.health import MIN_LABELS
from pipeline_lib.params import Task
from pipeline_lib.shards.shard_sets import ShardSet, shard_sets
from pipeline_lib.shards.training_records import AnswersRecord

STRETCH = 500
"""Minimum rows of a file to compare with their neighbours' labels, if it has as many."""
LEAD = 6.0
"""Standard errors by which answers must fit the neighbours' labels better than their own.  Even
answers given without reading the texts exceed it in only one stretch of a billion."""


def describe_answers(answers: KeyedTable, task: Task, splits: Mapping[str, ShardSet]) -> AnswersRecord:
    """Return the record of a teacher whose answers come from files, after checking them against the task's sets."""
    where = answers.origins.names
    indices_by_set = [_answer_indices(answers, rows) for rows in splits.values()]
    rows = sum(shards.manifest.rows for shards in splits.values())
    check_answered(sum(map(len, indices_by_set)), rows, where)
    check_weights(answers, _answer_indices(answers, splits["train"]))
    labels, indices = labelled_answers(answers, splits["train"])
    dev_labels, dev_indices = labelled_answers(answers, splits["dev"])
    outputs, dev_outputs = answers[indices], answers[dev_indices]
    both = np.concatenate([labels, dev_labels])
    check_related(both, np.concatenate([outputs, dev_outputs]), task, where)
    check_order(answers, both, np.concatenate([indices, dev_indices]), task)
    if len(dev_labels) >= MIN_LABELS:
        KINDS[task.kind].check_answers(answers.origins.files[0][1], dev_labels, dev_outputs, task.label_names)
    metric = task.metrics[0]
    agreed = KINDS[task.kind].agreement(labels, outputs) if len(labels) else None
    return AnswersRecord(
        metric=metric,
        labels=task.label_names,
        best_dev=score(metric, dev_labels, dev_outputs, task.positive_class) if len(dev_labels) else None,
        dev_rows=len(dev_labels),
        training_agreement=agreed,
        training_rows=len(labels),
        selection="answers out of files",
        provenance=answers.provenance,
        counts=answers.counts,
    )


def task_sets(folder: Path) -> dict[str, ShardSet]:
    """Return the sets of a task by name: its splits, and further texts."""
    return {path.name: ShardSet.open(path) for path in shard_sets(folder)}


def check_answered(count: int, total: int, where: str) -> None:
    """Check that any of a task's texts has an answer."""
    if total and not count:
        raise PotstillError(
            f"{where}: none of the task's {total:,} texts is answered: the file's texts, or the "
            "ids of its requests, are of others. Make the batch with `distill teacher requests`, "
            "or give lines with the `text` that was asked about."
        )


def _answer_indices(answers: KeyedTable, rows: ShardSet) -> np.ndarray:
    found = (answers.find(row_keys(table, answers.mask)) for table in rows.tables())
    indices = np.concatenate([np.zeros(0, np.int64), *found])
    return indices[indices >= 0]


def labelled_answers(answers: KeyedTable, rows: ShardSet) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of the rows that have both label and answer, and the answers' indices."""
    table = rows.to_table()
    indices = answers.find(row_keys(table, answers.mask))
    both = table["label"].is_valid().to_numpy() & (indices >= 0)
    return label_array(table["label"].filter(both)), indices[both]


def check_related(labels: np.ndarray, outputs: np.ndarray, task: Task, where: str) -> None:
    """Check that answers are related to the labels of their texts.

    :param labels: (rows,); :param outputs: float (rows, classes), or (rows, 1) scores.
    """
    if len(labels) < MIN_LABELS or np.ptp(labels) == 0:
        return
    measured = KINDS[task.kind].agreement(labels, outputs)
    chance = KINDS[task.kind].chance_agreement(labels, outputs)
    # If almost all rows have one class, chance alone gives nearly full agreement.
    if measured >= min(chance, 0.99):
        return
    raise PotstillError(
        f"{where}: the agreement of the answers to {len(labels):,} labelled texts with the labels is {measured:.1%}, "
        f"and shifted or mixed up answers could reach {chance:.1%}. Check that every answer is in the row of its own "
        "text, and that `classes` are in the order of the numbers."
    )


def check_order(answers: KeyedTable, labels: np.ndarray, indices: np.ndarray, task: Task) -> None:
    """Check that in no stretch of the files the answers belong to the texts one row up or down.

    If they do, they fit the labels there better than their own, by a sign test on rows where the two differ.  A sound
    teacher's answers fit their own better, however noisy they are, and whatever the order of the rows.

    :param labels: (labelled,); :param indices: of their answers, int (labelled,).
    """
    order = np.argsort(answers.places)
    row_labels, predictions = np.full(len(order), np.nan), KINDS[task.kind].decide(answers[:])
    if labels.ndim == 2:
        # Each set of labels is a class of its own.
        both = np.concatenate([labels, predictions])
        numbers = np.unique(both, axis=0, return_inverse=True)[1]
        labels, predictions = numbers[: len(labels)], numbers[len(labels) :]
    row_labels[indices] = labels
    if task.score_range and len(labels):
        # High or low: where the labels rise from row to row, answers that are too high would fit
        # the next label better than their own.
        row_labels[indices] = labels > np.median(labels)
        predictions = (predictions > np.median(predictions[indices])).astype(np.int64)
    row_labels, predictions = row_labels[order], predictions[order]
    for direction, step in (("up", 1), ("down", -1)):
        others = np.roll(row_labels, step)
        pairs = np.flatnonzero(~np.isnan(row_labels) & ~np.isnan(others))
        for rows in np.array_split(pairs, max(1, len(pairs) // STRETCH)):
            if _fits_others(predictions[rows], row_labels[rows], others[rows]):
                ends = answers.places[order[rows[[0, -1]]]]
                first, last = map(answers.origins.row, ends)
                raise PotstillError(
                    f"{first} to {last}: the answers fit the labels one row {direction} better "
                    "than their own: they are shifted. Put every answer in the row of its own text."
                )


def _fits_others(predictions: np.ndarray, labels: np.ndarray, others: np.ndarray) -> bool:
    """Whether answers, as class numbers (rows,), are those to the texts with the other labels.

    They must also agree with these better than by chance: of two classes, answers that are wrong otherwise would fit
    whichever label is not their own.
    """
    won = int(((predictions == others) & (predictions != labels)).sum())
    lost = int(((predictions == labels) & (predictions != others)).sum())
    if won - lost <= LEAD * math.sqrt(won + lost):
        return False
    outputs = np.eye(int(max(predictions.max(), others.max())) + 1)[predictions]
    return (predictions == others).mean() > Classes().chance_agreement(others.astype(np.int64), outputs)
