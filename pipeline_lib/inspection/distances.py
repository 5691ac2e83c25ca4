"""How unsure an answer is, how far apart two answers are, row by row, and how many labels are likely wrong.

Rows without an answer, or without a label, are NaN.
"""

import numpy as np

from pipeline_lib.base.kinds import KINDS, Classes
from pipeline_lib.base.kinds.probabilities import answered, sigmoid, softmax
from pipeline_lib.inspection.joined import RowBatch

CLOSE = 1e-6
"""A probability below the threshold by no more than this reaches it."""


def entropies(logits: np.ndarray, kind: str = Classes.name) -> np.ndarray:
    """Return the entropy of each row's answer in bits, float64 (rows,).

    :param logits: float (rows, classes).
    """
    known = answered(logits)
    of_kind = KINDS[kind]
    return np.where(known, of_kind.entropy_bits(of_kind.probabilities(logits)), np.nan)


def moved(one: np.ndarray, other: np.ndarray, kind: str = Classes.name) -> np.ndarray:
    """Return how far apart two answers to each row are, float64 (rows,).

    For classes it is the Jensen-Shannon divergence in bits (Lin 1991, section IV): 0 if they are
    equal, 1 if they are certain of two different classes.  Unlike Kullback-Leibler divergence it is
    symmetric and finite, so one overconfident answer does not lead every list.  Of several labels
    it is the sum over them.  For a regression it is the distance of the scores.

    :param one: float (rows, classes), or (rows, 1) for a regression; :param other: the same.
    """
    of_kind = KINDS[kind]
    if not of_kind.has_probabilities:
        return np.abs(one[:, 0].astype(np.float64) - other[:, 0])
    first, second = of_kind.probabilities(one), of_kind.probabilities(other)
    apart = of_kind.entropy_bits((first + second) / 2)
    apart = apart - (of_kind.entropy_bits(first) + of_kind.entropy_bits(second)) / 2
    # Rounding can put equal answers slightly below 0.
    return np.where(answered(one) & answered(other), np.maximum(apart, 0.0), np.nan)


def set_confidence(logits: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Return the probability of each row's set of labels, as if they were independent, (rows,).

    :param logits: float (rows, labels); :param marks: 0, 1 or NaN, of the same shape.
    """
    shares = sigmoid(logits)
    return np.where(marks == 1, shares, np.where(marks == 0, 1.0 - shares, np.nan)).prod(axis=1)


def self_confidence(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the probability of each row's label, float64 (rows,).

    The lower it is, the likelier the label is wrong (Northcutt et al. 2021, section 3.2).

    :param probabilities: float (rows, classes); :param labels: class numbers or NaN.
    """
    known = ~np.isnan(labels)
    classes = np.where(known, labels, 0).astype(np.int64)
    confidences = np.take_along_axis(probabilities, classes[:, None], axis=1)[:, 0]
    return np.where(known, confidences, np.nan)


class LabelErrors:
    """Counts likely label errors in two passes: learn from all batches, then count in all.

    By confident learning (Northcutt et al. 2021, section 3.1): a class's threshold is the mean probability that the
    teacher gives it on rows with that label; a row whose answer is another class, with at least that class's
    threshold as its probability, counts as an error.
    """

    def __init__(self, classes: int) -> None:
        self._sums, self._rows, self._errors = np.zeros(classes), np.zeros(classes, np.int64), 0

    def learn(self, batch: RowBatch) -> None:
        """Learn from a batch how sure the teacher is of each class on rows with that label."""
        labels, shares = _labelled(batch)
        confidences = np.take_along_axis(shares, labels[:, None], axis=1)[:, 0]
        self._sums += np.bincount(labels, confidences, len(self._sums))
        self._rows += np.bincount(labels, minlength=len(self._rows))

    def count(self, batch: RowBatch) -> None:
        """Count a batch's likely errors."""
        labels, shares = _labelled(batch)
        thresholds = self._sums / np.maximum(self._rows, 1)
        answers = shares.argmax(axis=1)
        sure = shares.max(axis=1) >= thresholds[answers] - CLOSE
        self._errors += int((sure & (answers != labels)).sum())

    def summary(self) -> str:
        """Say how the rows are ranked, and how many labels are likely wrong."""
        return (
            "Ranked by self-confidence; confident learning estimates that about "
            f"{self._errors:,} of {int(self._rows.sum()):,} labels are wrong."
        )


def _labelled(batch: RowBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels, int64, and the teacher's probabilities, for rows that have both."""
    labels = batch.labels
    known = ~np.isnan(labels) & answered(batch.logits)
    return labels[known].astype(np.int64), softmax(batch.logits[known])
