"""Counts labels that are likely wrong, by confident learning.

Northcutt et al. 2021, section 3.1: a class's threshold is the mean probability that the teacher
gives it on rows with that label; a row whose answer is another class, with at least that class's
threshold as its probability, counts as an error.  Rows are ranked by the probability of their
label.  cleanlab does the same, and is used if it is asked for and installed.
"""

from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from pipeline_lib.base.kinds.probabilities import answered, softmax
from pipeline_lib.inspection.joined import RowBatch

if TYPE_CHECKING:
    from cleanlab.experimental.label_issues_batched import LabelInspector

CLOSE = 1e-6
"""A probability below the threshold by no more than this reaches it."""


class LabelErrors:
    """Counts likely label errors in two passes: learn from all batches, then count in all."""

    def __init__(self, classes: int, cleanlab: bool = False) -> None:
        """Take the number of classes.

        :param cleanlab: whether cleanlab counts, if it is installed.
        """
        self._sums, self._rows, self._errors = np.zeros(classes), np.zeros(classes, np.int64), 0
        self._inspector = None
        if cleanlab and find_spec("cleanlab") is not None:
            self._inspector = _inspector(classes)

    def learn(self, batch: RowBatch) -> None:
        """Learn from a batch how sure the teacher is of each class on rows with that label."""
        labels, probabilities = _labelled(batch)
        confidences = np.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
        self._sums += np.bincount(labels, confidences, len(self._sums))
        self._rows += np.bincount(labels, minlength=len(self._rows))
        if self._inspector is not None and len(labels):
            self._inspector.update_confident_thresholds(labels, probabilities)

    def count(self, batch: RowBatch) -> None:
        """Count a batch's likely errors."""
        labels, probabilities = _labelled(batch)
        if self._inspector is not None and len(labels):
            self._inspector.score_label_quality(labels, probabilities)
        thresholds = self._sums / np.maximum(self._rows, 1)
        answers = probabilities.argmax(axis=1)
        sure = probabilities.max(axis=1) >= thresholds[answers] - CLOSE
        self._errors += int((sure & (answers != labels)).sum())

    def summary(self) -> str:
        """Say how the rows are ranked, and how many labels are likely wrong."""
        labels = int(self._rows.sum())
        if self._inspector is None or not labels:
            errors, by = self._errors, "self-confidence; confident learning"
        else:
            errors = int(self._inspector.get_num_issues())
            by = f"cleanlab {version('cleanlab')}'s self-confidence; it"
        return f"Ranked by {by} estimates that about {errors:,} of {labels:,} labels are wrong."


def _inspector(classes: int) -> "LabelInspector":
    from cleanlab.experimental.label_issues_batched import LabelInspector

    # Otherwise it would keep a score for every row.
    return LabelInspector(num_class=classes, store_results=False, verbose=False)


def _labelled(batch: RowBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels, int64, and the teacher's probabilities, for rows that have both."""
    labels = batch.labels
    known = ~np.isnan(labels) & answered(batch.logits)
    return labels[known].astype(np.int64), softmax(batch.logits[known])
