"""Whether a teacher's answers belong to their texts: by a task's labels, or by the texts' words."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.outputs.files.answers import Answers
from pipeline_lib.outputs.files.content_keys import read_texts, row_keys
from pipeline_lib.outputs.health import MIN_LABELS, chance_agreement
from pipeline_lib.outputs.word_prediction import MIN_CORRELATION, check_not_shifted
from pipeline_lib.params import Task
from pipeline_lib.results.metrics import agreement, decide, label_array, score
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.training_records import AnswersRecord

STRETCH = 500
"""Minimum rows of a file to compare with their neighbours' labels, if it has as many."""
LEAD = 6.0
"""Standard errors by which answers must fit the neighbours' labels better than their own.  Even
answers given without reading the texts exceed it in only one stretch of a billion."""


def describe_answers(
    answers: Answers,
    mask: str,
    task: Task,
    splits: Mapping[str, ShardSet],
    files: Sequence[Path],
) -> AnswersRecord:
    """Return the record of a teacher whose answers come from files, after checking them.

    :param splits: the task's train and dev; :param files: for messages.
    :raises DistilleryError: if the answers agree with the labels no better than by chance, if they
        or a stretch of them are shifted, or if they are in another unit.
    """
    where = ", ".join(path.name for path in files)
    labels, places = labelled_answers(answers, splits["train"], mask)
    known, dev_places = labelled_answers(answers, splits["dev"], mask)
    outputs, dev_outputs = answers.logits[places], answers.logits[dev_places]
    check_related(
        *(np.concatenate(pair) for pair in ((labels, known), (outputs, dev_outputs))), task, where
    )
    both = np.concatenate([labels, known]), np.concatenate([places, dev_places])
    check_order(answers, *both, task, files)
    if task.is_regression and len(known) >= MIN_LABELS:
        # Imported only where it is needed: it imports torch.
        from pipeline_lib.results.metrics import check_unit

        check_unit(files[0], known, dev_outputs[:, 0])
    metric = task.metrics[0]
    agreed = agreement(labels, outputs, task.is_regression) if len(labels) else None
    return AnswersRecord(
        metric=metric,
        labels=task.label_names,
        best_dev=score(metric, known, dev_outputs, task.positive_class) if len(known) else None,
        dev_rows=len(known),
        training_agreement=agreed,
        training_rows=len(labels),
        predicted_from_words=check_words(answers, splits["train"], mask, where),
        selection="answers out of files",
        provenance=answers.provenance,
        counts=answers.counts,
    )


def check_words(answers: Answers, rows: ShardSet, mask: str, where: str) -> float | None:
    """Check, without labels, that the answers of the files are not shifted as a whole.

    :return: how well the words of the texts predict the answers; None: there are too few texts.
    :raises DistilleryError: if they predict the answers one row up or down better.
    """
    table = rows.table()
    places = answers.find(row_keys(table, mask))
    texts = [" ".join(row) for row in zip(*read_texts(table, mask), strict=True)]
    answered = np.flatnonzero(places >= 0)
    files, lines = answers.rows[places[answered]].T
    answered = answered[np.lexsort((lines, files))]
    answered_texts = [texts[row] for row in answered]
    return check_not_shifted(answered_texts, answers.logits[places[answered]], where, "answers")


def unrelated_warning(name: str, record: AnswersRecord) -> str | None:
    """Return the warning for answers that nothing in their texts predicts; None: they fit."""
    value = record.predicted_from_words
    if value is None or value >= MIN_CORRELATION:
        return None
    return (
        f"warning: {name}: the words of its texts do not predict its answers (correlation "
        f"{value:.2f}), as if the answers were shifted or mixed up. Check some rows: "
        "`distill shards show`."
    )


def labelled_answers(answers: Answers, rows: ShardSet, mask: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of the rows that have both label and answer, and the answers' indices."""
    table = rows.table()
    places = answers.find(row_keys(table, mask))
    both = table["label"].is_valid().to_numpy() & (places >= 0)
    return label_array(table["label"].filter(both)), places[both]


def check_related(labels: np.ndarray, outputs: np.ndarray, task: Task, where: str) -> None:
    """Check that answers are related to the labels of their texts.

    :param labels: (rows,); :param outputs: float (rows, classes), or (rows, 1) scores.
    :raises DistilleryError: if they agree no better than shuffled answers would.
    """
    if len(labels) < MIN_LABELS or np.ptp(labels) == 0:
        return
    measured = agreement(labels, outputs, task.is_regression)
    chance = chance_agreement(labels, outputs, task.is_regression)
    # If almost all rows have one class, chance alone gives nearly full agreement.
    if measured >= min(chance, 0.99):
        return
    raise DistilleryError(
        f"{where}: the agreement of the answers to {len(labels):,} labelled texts with the labels "
        f"is {measured:.1%}, and shifted or mixed up answers could reach {chance:.1%}. Check that "
        "every answer is in the row of its own text, and that `classes` are in the order of the "
        "numbers."
    )


def check_order(
    answers: Answers, labels: np.ndarray, places: np.ndarray, task: Task, files: Sequence[Path]
) -> None:
    """Check that in no stretch of the files the answers belong to the texts one row up or down.

    If they do, they fit the labels there better than their own.  Only rows where the two labels
    differ count (a sign test).  A sound teacher's answers fit their own labels better, however
    noisy they are, in whatever order the rows are and wherever the hard ones stand.

    :param labels: (labelled,); :param places: the indices of their answers, int (labelled,).
    :param files: as they were read.
    :raises DistilleryError: naming the first and last row of the stretch.
    """
    order = np.lexsort((answers.rows[:, 1], answers.rows[:, 0]))
    known, predictions = np.full(len(order), np.nan), decide(answers.logits, task.is_regression)
    known[places] = labels
    if task.is_regression and len(labels):
        # High or low: where the labels rise from row to row, answers that are too high would fit
        # the next label better than their own.
        known[places] = labels > np.median(labels)
        predictions = (predictions > np.median(predictions[places])).astype(np.int64)
    known, predictions = known[order], predictions[order]
    for direction, step in (("up", 1), ("down", -1)):
        others = np.roll(known, step)
        pairs = np.flatnonzero(~np.isnan(known) & ~np.isnan(others))
        for rows in np.array_split(pairs, max(1, len(pairs) // STRETCH)):
            if _fits_others(predictions[rows], known[rows], others[rows]):
                first, last = (_row(answers, order[row], files) for row in rows[[0, -1]])
                raise DistilleryError(
                    f"{first} to {last}: the answers fit the labels one row {direction} better "
                    "than their own: they are shifted. Put every answer in the row of its own text."
                )


def _fits_others(predictions: np.ndarray, labels: np.ndarray, others: np.ndarray) -> bool:
    """Whether answers are those to other texts.

    They must also agree with the others' labels better than by chance: of two classes, answers that
    are wrong otherwise would fit whichever label is not their own.

    :param predictions: class numbers (rows,).
    :param labels: of their texts; :param others: the others'.
    """
    won = int(((predictions == others) & (predictions != labels)).sum())
    lost = int(((predictions == labels) & (predictions != others)).sum())
    if won - lost <= LEAD * math.sqrt(won + lost):
        return False
    outputs = np.eye(int(max(predictions.max(), others.max())) + 1)[predictions]
    return (predictions == others).mean() > chance_agreement(
        others.astype(np.int64), outputs, False
    )


def _row(answers: Answers, index: int, files: Sequence[Path]) -> str:
    file, row = answers.rows[index]
    return f"{files[file].name}: row {row}"
