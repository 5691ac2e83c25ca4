"""The tasks' metrics, as fractions.

:func:`score` is for one system.  :func:`from_confusion`, :func:`from_scores` and :func:`from_labels` compute a whole
stack of resamples at once, which the bootstrap needs (thousands of them).
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.probabilities import Kind
from pipeline_lib.params import CORRELATIONS, DECISIONS, LABEL_SCORES, Metric
from pipeline_lib.shards.columns import kind_of_labels, matrix

MIN_ERROR_OF_ANOTHER_UNIT = 2.0
"""In standard deviations of the labels on dev."""


def decide(outputs: np.ndarray, kind: Kind) -> np.ndarray:
    """Return the answers: class numbers, int64; or the scores of a regression, float64.

    Of several labels, a 0 or 1 for each, uint8 (rows, labels): those above a probability of 0.5.

    :param outputs: float, shape (rows, classes), or (rows, 1) for a regression.
    """
    if kind == "regression":
        return outputs[:, 0].astype(np.float64)
    if kind == "multilabel":
        return (outputs > 0).astype(np.uint8)
    return outputs.argmax(axis=1)


def label_array(column: pa.ChunkedArray) -> np.ndarray:
    """Return a label column without nulls: class numbers, int64, or scores, float32.

    Of several labels, a 0 or 1 for each, uint8 (rows, labels).
    """
    kind = kind_of_labels(column)
    if kind == "multilabel":
        return matrix(column)
    return column.to_numpy().astype(np.float32 if kind == "regression" else np.int64)


def score(metric: Metric, labels: np.ndarray | None, outputs: np.ndarray, positive: int = 1) -> float:
    """Return ``metric`` of ``outputs``.

    ``f1`` is that of the class ``positive`` for two classes, and the mean over all classes for
    more.  A correlation with a constant is 0.

    :param labels: int classes or float scores, shape (rows,), or 0 or 1 for several labels, shape
        (rows, labels); None or negative where hidden.
    :param outputs: float, shape (rows, classes), or (rows, 1) for a regression.
    """
    labels = check_labels(labels, outputs)
    if metric in LABEL_SCORES:
        return float(from_labels(metric, labels, outputs[None], np.ones((1, len(labels))))[0, 0])
    answers = decide(outputs, "regression" if metric in CORRELATIONS else "classification")
    if metric in CORRELATIONS:
        return _correlation(metric, labels, answers)
    classes = outputs.shape[1]
    cells = np.bincount(labels * classes + answers, minlength=classes * classes)
    return float(from_confusion(metric, cells.reshape(classes, classes), positive))


def _correlation(metric: Metric, labels: np.ndarray, answers: np.ndarray) -> float:
    import scipy.stats

    if np.ptp(labels) == 0 or np.ptp(answers) == 0:
        return 0.0
    function = scipy.stats.pearsonr if metric == "pearson" else scipy.stats.spearmanr
    return float(function(labels.astype(np.float64), answers).statistic)


def agreement(labels: np.ndarray, outputs: np.ndarray, kind: Kind) -> float:
    """Return how well outputs agree with labels: accuracy, or Pearson's r for a regression.

    Of several labels, the share of rows that agree in every one (subset accuracy).
    """
    if kind == "multilabel":
        return float((decide(outputs, kind) == labels).all(axis=1).mean())
    return score("pearson" if kind == "regression" else "accuracy", labels, outputs)


def from_labels(metric: Metric, labels: np.ndarray, outputs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return a score of several labels on every sample of rows, float64 (samples, seeds).

    ``f1_micro`` pools the decisions about all labels; ``f1_macro`` is the mean of the labels' F1;
    ``average_precision`` is the mean of their average precision, Σ (Rₙ - Rₙ₋₁) Pₙ over the
    thresholds, which needs no decisions.  A label without a positive row counts as 0.

    :param labels: 0 or 1, (rows, labels); :param outputs: logits, (seeds, rows, labels).
    :param counts: how often each row is in each sample, float (samples, rows).
    """
    if metric == "average_precision":
        return np.stack([_average_precision(labels, one, counts) for one in outputs], axis=1)
    decided = outputs > 0
    actual = (counts @ labels)[:, None]
    predicted, hits = (np.stack([counts @ one for one in each], axis=1) for each in (decided, decided * labels))
    if metric == "f1_micro":
        return _ratio(2 * hits.sum(-1), (actual + predicted).sum(-1))
    if metric == "f1_macro":
        return _ratio(2 * hits, actual + predicted).mean(-1)
    raise unknown_metric(metric)


def _average_precision(labels: np.ndarray, outputs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return one seed's mean over labels of the average precision on every sample, (samples,)."""
    each = []
    for marks, values in zip(labels.T, outputs.T, strict=True):
        order = np.argsort(-values, kind="stable")
        # Rows of equal outputs cannot be separated: they share a threshold.
        ends = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))
        rows = counts[:, order]
        hits = np.cumsum(rows * marks[order], axis=1)[:, ends]
        precision = _ratio(hits, np.cumsum(rows, axis=1)[:, ends])
        gained = np.diff(hits, axis=1, prepend=0.0)
        each.append(_ratio((gained * precision).sum(axis=1), hits[:, -1]))
    return np.mean(each, axis=0)


def from_scores(metric: Metric, labels: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return the correlation of every row of ``answers`` with the labels, float64.

    :param labels: float, shape (rows,); :param answers: float, shape (..., rows).
    """
    if metric == "spearman":
        import scipy.stats

        labels = scipy.stats.rankdata(labels)
        answers = scipy.stats.rankdata(answers, axis=-1)
    x = labels - labels.mean()
    y = answers - answers.mean(-1, keepdims=True)
    return _ratio((x * y).sum(-1), np.sqrt((x * x).sum() * (y * y).sum(-1)))


def from_confusion(metric: Metric, confusion: np.ndarray, positive: int = 1) -> np.ndarray:
    """Return ``metric`` of every confusion matrix, float64.

    :param confusion: counts, shape (..., classes, classes): label first, prediction second.
    :param positive: the class whose ``f1`` is computed for two classes.
    """
    counts = confusion.astype(np.float64)
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    actual, predicted, rows = counts.sum(-1), counts.sum(-2), counts.sum((-2, -1))
    if metric == "accuracy":
        return hits.sum(-1) / rows
    if metric == "f1":
        each = _ratio(2 * hits, actual + predicted)
        return each[..., positive] if counts.shape[-1] == 2 else each.mean(-1)
    if metric == "matthews_correlation":
        # The multi-class form (Gorodkin 2004), of which the binary one is a special case.
        covariance = hits.sum(-1) * rows - (actual * predicted).sum(-1)
        spread = (rows**2 - (predicted**2).sum(-1)) * (rows**2 - (actual**2).sum(-1))
        return _ratio(covariance, np.sqrt(spread))
    raise unknown_metric(metric)


def check_labels(labels: np.ndarray | None, predictions: np.ndarray) -> np.ndarray:
    """Return ``labels`` if all are known and there is one per answer."""
    hidden = labels is None or (labels.dtype.kind == "i" and (labels < 0).any())
    if hidden:
        raise PotstillError("hidden labels cannot be scored. Score the dev split, or give the test file's labels.")
    if len(labels) != len(predictions) or not len(labels):
        raise PotstillError(f"{len(predictions)} predictions for {len(labels)} labels to score.")
    return np.asarray(labels)


def unknown_metric(metric: str) -> PotstillError:
    """Return the error for an unknown metric."""
    known = ", ".join((*DECISIONS, *CORRELATIONS, *LABEL_SCORES))
    return PotstillError(f"metric {metric!r}: take one of {known}.")


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    # 0/0 (a class that is neither given nor predicted) counts as 0, as in scikit-learn.
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=np.asarray(denominator) > 0)


def best_threshold(values: np.ndarray, labels: np.ndarray, metric: Metric, positive: int = 1) -> float:
    """Return the threshold at which "class 1 if the value is above" scores best.

    It may be above or below all values.

    :param values: float (rows,); :param labels: 0 or 1, (rows,).
    :param positive: the class whose F1 is computed.
    """
    order = np.argsort(-values, kind="stable")
    ordered, rows = values[order], len(labels)
    hits = np.concatenate([[0], np.cumsum(labels[order] == 1)])
    ones, above = int(hits[-1]), np.arange(rows + 1)
    # One confusion matrix per number of values above: label first, answer second.
    confusion = np.empty((rows + 1, 2, 2))
    confusion[:, 1, 1], confusion[:, 0, 1] = hits, above - hits
    confusion[:, 1, 0], confusion[:, 0, 0] = ones - hits, rows - ones - (above - hits)
    scores = from_confusion(metric, confusion, positive)
    # Equal values cannot be separated.
    scores[1:-1][ordered[:-1] == ordered[1:]] = -np.inf
    bounds = np.concatenate([[ordered[0] + 2.0], ordered, [ordered[-1] - 2.0]])
    best = int(scores.argmax())
    return float((bounds[best] + bounds[best + 1]) / 2)


def check_unit(finished: Path, labels: np.ndarray, scores: np.ndarray) -> None:
    """Check that a regression's scores are in the unit of the labels, both shape (rows,).

    Correlations would not reveal it, but students are trained on both.  A constant prediction has
    an error of the labels' standard deviation; and scores that follow the labels vary as they do.
    """
    spread, deviation = float(labels.std()), float(scores.std())
    error = float(np.sqrt(np.mean((scores - labels) ** 2)))
    explained = score("pearson", labels, scores[:, None]) * spread
    if error <= MIN_ERROR_OF_ANOTHER_UNIT * spread and 3 * deviation >= explained:
        return
    raise PotstillError(
        f"{finished}: the teacher's scores on dev (mean {scores.mean():.3g}, standard deviation "
        f"{deviation:.3g}) are in another unit than the labels (mean {labels.mean():.3g}, standard "
        f"deviation {spread:.3g}): their error is {error:.3g}. Rescale the task's label column to "
        "the teacher's unit, or have a teacher fine-tuned here (`kind: single`)."
    )
