"""The tasks' metrics, as fractions.

Two ways to the same number: :func:`score` asks scikit-learn for one prediction, and
:func:`from_confusion` computes a whole stack of confusion matrices at once, which is what the
bootstrap needs (thousands of resamples).  The tests hold the two against each other.
"""

from typing import Literal

import numpy as np

from pipeline_lib.errors import DistilleryError

Metric = Literal["accuracy", "f1", "matthews_correlation"]


def score(
    metric: Metric, labels: np.ndarray | None, predictions: np.ndarray, classes: int
) -> float:
    """Return ``metric`` of ``predictions`` (METHODS section 1).

    ``f1`` is that of class 1 with two classes, and the mean of every class's with more.

    :param labels: int, shape (rows,); None or negative where hidden.
    :param predictions: int, shape (rows,).
    :param classes: how many classes the task has, also those that do not occur.
    :raises DistilleryError: if a label is hidden, or the metric is none of ours.
    """
    labels = check_labels(labels, predictions)
    import sklearn.metrics

    if metric == "accuracy":
        return float(sklearn.metrics.accuracy_score(labels, predictions))
    if metric == "f1":
        each = sklearn.metrics.f1_score(
            labels, predictions, labels=range(classes), average=None, zero_division=0.0
        )
        return float(each[1] if classes == 2 else each.mean())
    if metric == "matthews_correlation":
        return float(sklearn.metrics.matthews_corrcoef(labels, predictions))
    raise unknown_metric(metric)


def from_confusion(metric: Metric, confusion: np.ndarray) -> np.ndarray:
    """Return ``metric`` of every confusion matrix, float64.

    :param confusion: counts, shape (..., classes, classes): label first, prediction second.
    :raises DistilleryError: if the metric is none of ours.
    """
    counts = confusion.astype(np.float64)
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    given, predicted, rows = counts.sum(-1), counts.sum(-2), counts.sum((-2, -1))
    if metric == "accuracy":
        return hits.sum(-1) / rows
    if metric == "f1":
        each = _ratio(2 * hits, given + predicted)
        return each[..., 1] if counts.shape[-1] == 2 else each.mean(-1)
    if metric == "matthews_correlation":
        # The multi-class form (Gorodkin 2004), of which the binary one is a case.
        covariance = hits.sum(-1) * rows - (given * predicted).sum(-1)
        spread = (rows**2 - (predicted**2).sum(-1)) * (rows**2 - (given**2).sum(-1))
        return _ratio(covariance, np.sqrt(spread))
    raise unknown_metric(metric)


def check_labels(labels: np.ndarray | None, predictions: np.ndarray) -> np.ndarray:
    """Return ``labels`` if all are known and there is one per prediction.

    :raises DistilleryError: otherwise; hidden labels are never scored.
    """
    if labels is None or np.any(np.asarray(labels) < 0):
        raise DistilleryError(
            "hidden labels cannot be scored. Score the dev split, or give the test file's labels."
        )
    if len(labels) != len(predictions) or not len(labels):
        raise DistilleryError(f"{len(predictions)} predictions for {len(labels)} labels to score.")
    return np.asarray(labels)


def unknown_metric(metric: str) -> DistilleryError:
    """Return the error for a metric that is none of ours."""
    return DistilleryError(f"metric {metric!r}: take accuracy, f1 or matthews_correlation.")


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    # 0/0 (a class that is neither given nor predicted) counts as 0, as in scikit-learn.
    return np.divide(
        numerator, denominator, out=np.zeros_like(numerator), where=np.asarray(denominator) > 0
    )
