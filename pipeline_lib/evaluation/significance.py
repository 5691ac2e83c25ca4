"""The paired bootstrap: whether one system is better, or it was the choice of examples.

Both systems are scored on the same resamples of the evaluation set (Efron 1979, Koehn 2004), each
as the mean over its seeds.  What is resampled are examples, not seeds: the interval says how the
difference would move on another sample of text, and the spread over seeds is reported beside it.
"""

from dataclasses import dataclass

import numpy as np

from pipeline_lib.evaluation.metrics import Metric, check_labels, from_confusion


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
    *,
    resamples: int,
    confidence: float,
    seed: int,
) -> Difference:
    """Return the mean score of ``a``'s seeds minus that of ``b``'s, with interval and p value.

    :param labels: int, shape (rows,).
    :param a: predicted classes, shape (seeds, rows); ``b`` may have another number of seeds.
    :param b: the other system's, on the same rows in the same order.
    :param resamples: how many samples of ``rows`` examples, with replacement.
    :param confidence: width of the percentile interval, e.g. 0.95.
    :raises DistilleryError: if labels are hidden or rows are missing.
    """
    cells_a = np.stack([check_labels(labels, row) * classes + row for row in a])
    cells_b = np.stack([check_labels(labels, row) * classes + row for row in b])
    observed = _mean_score(cells_a, metric, classes) - _mean_score(cells_b, metric, classes)
    rng = np.random.default_rng(seed)
    rows = cells_a.shape[1]
    differences = np.empty(resamples)
    for i in range(resamples):
        chosen = rng.integers(0, rows, rows)
        differences[i] = _mean_score(cells_a[:, chosen], metric, classes) - _mean_score(
            cells_b[:, chosen], metric, classes
        )
    low, high = np.quantile(differences, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Difference(float(observed), float(low), float(high), _two_sided(differences))


def _mean_score(cells: np.ndarray, metric: Metric, classes: int) -> float:
    """Score one resample; ``cells`` are numbers of confusion-matrix cells, shape (seeds, rows)."""
    size = classes * classes
    counts = np.stack([np.bincount(row, minlength=size) for row in cells])
    return float(from_confusion(metric, counts.reshape(-1, classes, classes)).mean())


def _two_sided(differences: np.ndarray) -> float:
    """Twice the share of resamples on the far side of zero; one is added so that it is never 0."""
    # Equal means of different seeds differ in the last bit; that is a tie, not a win.
    differences = np.round(differences, 12)
    tail = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    return min(1.0, 2.0 * (int(tail) + 1) / (len(differences) + 1))
