"""What a teacher's answers come to on a task's own labels: whether they belong to their texts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.params import Task
from pipeline_lib.storage.shards import ShardSet
from pipeline_lib.tasks.metrics import agreement, label_array, score
from pipeline_lib.teachers.answers import Answers, row_keys
from pipeline_lib.teachers.health import MIN_LABELS, chance_agreement


def describe_answers(
    answers: Answers,
    mask: str,
    task: Task,
    splits: Mapping[str, ShardSet],
    files: Sequence[Path],
) -> dict[str, Any]:
    """Return the record of a teacher whose answers stand in files, once they are trusted.

    ``training_agreement`` and ``best_dev`` are of the labelled rows that have an answer, null
    where none has.

    :param splits: the task's train and dev; :param files: for messages.
    :raises DistilleryError: if the answers agree with the labels no better than by chance, or are
        in another unit.
    """
    where = ", ".join(path.name for path in files)
    labels, found = labelled_answers(answers, splits["train"], mask)
    known, own = labelled_answers(answers, splits["dev"], mask)
    check_related(*(np.concatenate(pair) for pair in ((labels, known), (found, own))), task, where)
    if task.is_regression and len(known) >= MIN_LABELS:
        # Imported where it is needed: it comes with torch.
        from pipeline_lib.teachers.finetuning import check_unit

        check_unit(files[0], known, own[:, 0])
    metric = task.metrics[0]
    return {
        "metric": metric,
        "labels": task.label_names,
        "best_dev": score(metric, known, own, task.positive_class) if len(known) else None,
        "dev_rows": len(known),
        "training_agreement": agreement(labels, found, task.is_regression) if len(labels) else None,
        "training_rows": len(labels),
        "selection": "answers out of files",
        "provenance": answers.provenance,
        "counts": answers.counts,
    }


def labelled_answers(answers: Answers, rows: ShardSet, mask: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of the rows that have both label and answer, (rows,), and the answers."""
    table = rows.table()
    places = answers.find(row_keys(table, mask))
    both = table["label"].is_valid().to_numpy() & (places >= 0)
    return label_array(table["label"].filter(both)), answers.logits[places[both]]


def check_related(labels: np.ndarray, outputs: np.ndarray, task: Task, where: str) -> None:
    """Check that answers have to do with the labels of their texts.

    :param labels: (rows,); :param outputs: float (rows, classes), or (rows, 1) scores.
    :raises DistilleryError: if they agree no better than answers in any other order would.
    """
    if len(labels) < MIN_LABELS or np.ptp(labels) == 0:
        return
    found = agreement(labels, outputs, task.is_regression)
    chance = chance_agreement(labels, outputs, task.is_regression)
    # Of classes that are as good as one, chance leaves no room.
    if found >= min(chance, 0.99):
        return
    raise DistilleryError(
        f"{where}: the answers to {len(labels):,} labelled texts agree with the labels by "
        f"{found:.1%}, and answers that were shifted or mixed up may do so by {chance:.1%}. Check "
        "that every answer stands beside its own text, and `classes` are in the order of the "
        "numbers."
    )
