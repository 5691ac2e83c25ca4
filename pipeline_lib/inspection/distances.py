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
    of_kind = KINDS[kind]
    return np.where(answered(logits), of_kind.entropy_bits(of_kind.probabilities(logits)), np.nan)


def moved(answers: np.ndarray, others: np.ndarray, kind: str = Classes.name) -> np.ndarray:
    """Return how far apart two answers to each row are, float64 (rows,).

    For classes it is the Jensen-Shannon divergence in bits (Lin 1991, section IV): 0 if they are
    equal, 1 if they are certain of two different classes.  Unlike Kullback-Leibler divergence it is
    symmetric and finite, so one overconfident answer does not lead every list.  Of several labels
    it is the sum over them.  For a regression it is the distance of the scores.

    :param answers: float (rows, classes), or (rows, 1) for a regression; :param others: the same.
    """
    of_kind = KINDS[kind]
    if not of_kind.has_probabilities:
        return np.abs(answers[:, 0].astype(np.float64) - others[:, 0])
    first, second = of_kind.probabilities(answers), of_kind.probabilities(others)
    apart = of_kind.entropy_bits((first + second) / 2)
    apart = apart - (of_kind.entropy_bits(first) + of_kind.entropy_bits(second)) / 2
    # Rounding can put equal answers slightly below 0.
    return np.where(answered(answers) & answered(others), np.maximum(apart, 0.0), np.nan)


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
    hidden = np.isnan(labels)
    confidences = probabilities[np.arange(len(labels)), np.where(hidden, 0, labels).astype(np.int64)]
    return np.where(hidden, np.nan, confidences)


class LabelErrors:
    """Counts likely label errors in two passes: learn from all batches, then count in all.

    By confident learning (Northcutt et al. 2021, section 3.1): a class's threshold is the mean probability that the
    teacher gives it on rows with that label; a row whose answer is another class, with at least that class's
    threshold as its probability, counts as an error.
    """

    def __init__(self, classes: int) -> None:
        self._sums, self._rows, self._errors = np.zeros(classes), np.zeros(classes, np.int64), 0

    def learn(self, batch: RowBatch) -> None:
        """Learn from a batch how sure the teacher is of each class."""
        labels, shares = _labelled(batch)
        self._sums += np.bincount(labels, shares[np.arange(len(labels)), labels], len(self._sums))
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
    both = ~np.isnan(batch.labels) & answered(batch.logits)
    return batch.labels[both].astype(np.int64), softmax(batch.logits[both])
