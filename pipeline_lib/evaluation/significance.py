"""The paired bootstrap: whether one system is better, or it was the choice of examples.

Both systems are scored on the same resamples of the evaluation set (Efron 1979, Koehn 2004), each
as the mean over its seeds.  What is resampled are examples, not seeds: the interval says how the
difference would move on another sample of text, and the spread over seeds is reported beside it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline_lib.evaluation.metrics import check_labels, from_confusion, from_scores
from pipeline_lib.params import CORRELATIONS, Metric

MeanScore = Callable[[np.ndarray], float]
"""Row numbers of a sample to the mean score over seeds."""


@dataclass(frozen=True)
class Difference:
    """A's score minus B's, its confidence interval, and the two-sided p value of no difference."""

    difference: float
    low: float
    high: float
    p: float


def paired_bootstrap(
    labels: np.ndarray | None,
    a: np.ndarray,
    b: np.ndarray,
    metric: Metric,
    classes: int,
    positive: int = 1,
    *,
    resamples: int,
    confidence: float,
    seed: int,
) -> Difference:
    """Return the mean score of ``a``'s seeds minus that of ``b``'s, with interval and p value.

    :param labels: int classes, or float scores of a regression, shape (rows,).
    :param a: answers, shape (seeds, rows); ``b`` may have another number of seeds.
    :param b: the other system's, on the same rows in the same order.
    :param classes: how many the task has; 1 of a regression.
    :param positive: the class whose F1 is taken with two classes.
    :param resamples: how many samples of ``rows`` examples, with replacement.
    :param confidence: width of the percentile interval, e.g. 0.95.
    :raises DistilleryError: if labels are hidden or rows are missing.
    """
    for answers in (*a, *b):
        labels = check_labels(labels, answers)
    means = _correlations if metric in CORRELATIONS else _decisions
    scored_a, scored_b = (means(labels, answers, metric, classes, positive) for answers in (a, b))
    everything = np.arange(len(labels))
    observed = scored_a(everything) - scored_b(everything)
    rng = np.random.default_rng(seed)
    differences = np.empty(resamples)
    for i in range(resamples):
        chosen = rng.integers(0, len(labels), len(labels))
        differences[i] = scored_a(chosen) - scored_b(chosen)
    low, high = np.quantile(differences, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Difference(float(observed), float(low), float(high), _two_sided(differences))


def _decisions(
    labels: np.ndarray, answers: np.ndarray, metric: Metric, classes: int, positive: int
) -> MeanScore:
    """Return the function that scores a sample of rows by confusion matrices."""
    cells = labels * classes + answers
    size = classes * classes

    def mean(rows: np.ndarray) -> float:
        counts = np.stack([np.bincount(row, minlength=size) for row in cells[:, rows]])
        stack = counts.reshape(-1, classes, classes)
        return float(from_confusion(metric, stack, positive).mean())

    return mean


def _correlations(labels: np.ndarray, answers: np.ndarray, metric: Metric, *_: int) -> MeanScore:
    """Return the function that scores a sample of rows by correlation."""
    return lambda rows: float(from_scores(metric, labels[rows], answers[:, rows]).mean())


def _two_sided(differences: np.ndarray) -> float:
    """Twice the share of resamples on the far side of zero; one is added so that it is never 0."""
    # Equal means of different seeds differ in the last bit; that is a tie, not a win.
    differences = np.round(differences, 12)
    tail = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    return min(1.0, 2.0 * (int(tail) + 1) / (len(differences) + 1))
