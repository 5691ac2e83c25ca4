"""Whether a teacher's answers belong to their texts: by a task's labels, or by the texts' words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.params import Task
from pipeline_lib.storage.shards import ShardSet
from pipeline_lib.tasks.metrics import agreement, label_array, score
from pipeline_lib.teachers.answers import Answers
from pipeline_lib.teachers.content_keys import read_texts, row_keys
from pipeline_lib.teachers.health import MIN_LABELS, chance_agreement
from pipeline_lib.teachers.word_prediction import MIN_CORRELATION, predicted_from_words


def describe_answers(
    answers: Answers,
    mask: str,
    task: Task,
    splits: Mapping[str, ShardSet],
    files: Sequence[Path],
) -> dict[str, Any]:
    """Return the record of a teacher whose answers come from files, after checking them.

    ``training_agreement`` and ``best_dev`` cover the labelled rows that have an answer, null if
    there are none; ``predicted_from_words`` is how well the words of the training texts predict the
    answers, null if there are too few.

    :param splits: the task's train and dev; :param files: for messages.
    :raises DistilleryError: if the answers agree with the labels no better than by chance, or are
        in another unit.
    """
    where = ", ".join(path.name for path in files)
    labels, found = labelled_answers(answers, splits["train"], mask)
    known, own = labelled_answers(answers, splits["dev"], mask)
    check_related(*(np.concatenate(pair) for pair in ((labels, known), (found, own))), task, where)
    if task.is_regression and len(known) >= MIN_LABELS:
        # Imported only where it is needed: it imports torch.
        from pipeline_lib.teachers.finetuning import check_unit

        check_unit(files[0], known, own[:, 0])
    metric, rows = task.metrics[0], splits["train"].table()
    places = answers.find(row_keys(rows, mask))
    texts = [" ".join(row) for row in zip(*read_texts(rows, mask), strict=True)]
    return {
        "metric": metric,
        "labels": task.label_names,
        "best_dev": score(metric, known, own, task.positive_class) if len(known) else None,
        "dev_rows": len(known),
        "training_agreement": agreement(labels, found, task.is_regression) if len(labels) else None,
        "training_rows": len(labels),
        "predicted_from_words": predicted_from_words(
            np.array(texts)[places >= 0], answers.logits[places[places >= 0]]
        ),
        "selection": "answers out of files",
        "provenance": answers.provenance,
        "counts": answers.counts,
    }


def unrelated_warning(name: str, record: Mapping[str, Any]) -> str | None:
    """Return the warning for answers that nothing in their texts predicts; None: they fit.

    :param record: see :func:`describe_answers`.
    """
    value = record["predicted_from_words"]
    if value is None or value >= MIN_CORRELATION:
        return None
    return (
        f"warning: {name}: the words of its texts do not predict its answers (correlation "
        f"{value:.2f}), as if the answers were shifted or mixed up. Check some rows: "
        "`distill shards show`."
    )


def labelled_answers(answers: Answers, rows: ShardSet, mask: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of the rows that have both label and answer, (rows,), and the answers."""
    table = rows.table()
    places = answers.find(row_keys(table, mask))
    both = table["label"].is_valid().to_numpy() & (places >= 0)
    return label_array(table["label"].filter(both)), answers.logits[places[both]]


def check_related(labels: np.ndarray, outputs: np.ndarray, task: Task, where: str) -> None:
    """Check that answers are related to the labels of their texts.

    :param labels: (rows,); :param outputs: float (rows, classes), or (rows, 1) scores.
    :raises DistilleryError: if they agree no better than shuffled answers would.
    """
    if len(labels) < MIN_LABELS or np.ptp(labels) == 0:
        return
    found = agreement(labels, outputs, task.is_regression)
    chance = chance_agreement(labels, outputs, task.is_regression)
    # If almost all rows have one class, chance alone gives nearly full agreement.
    if found >= min(chance, 0.99):
        return
    raise DistilleryError(
        f"{where}: the agreement of the answers to {len(labels):,} labelled texts with the labels "
        f"is {found:.1%}, and shifted or mixed up answers could reach {chance:.1%}. Check that "
        "every answer is in the row of its own text, and that `classes` are in the order of the "
        "numbers."
    )
