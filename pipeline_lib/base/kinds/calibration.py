"""Calibration: how far a model's probabilities can be trusted, besides how often it is right.

A classifier's confidence is the probability of its answer.  Scores are functions of samples of the rows, so that the
bootstrap uses the same code as the score.
"""

from collections.abc import Mapping

import numpy as np

from pipeline_lib.base.kinds.kind import ScoreSamples, row_counts
from pipeline_lib.base.kinds.probabilities import of_two, softmax

BINS = 15
COVERAGES: Mapping[str, float] = {"accuracy_at_50": 0.5, "accuracy_at_80": 0.8}
"""The coverage of each selective accuracy: the share of most confident rows."""
TEMPERATURES = (0.05, 20.0)
"""The range searched for a temperature: a model without errors on dev would get 0."""


def log_losses(labels: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Return the negative log-likelihood of each row's label, in nats, float64 (rows,)."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    label_logits = np.take_along_axis(shifted, labels[:, None], axis=1)[:, 0]
    return np.log(np.exp(shifted).sum(axis=1)) - label_logits


def calibration_errors(labels: np.ndarray, outputs: np.ndarray) -> ScoreSamples:
    """Return the expected calibration error of each seed, as a score of samples of rows.

    The rows, sorted by confidence, fall into :data:`BINS` bins of equal mass; the error is the mean over bins of the
    distance between accuracy and mean confidence (Guo et al. 2017, section 2, equation 3, with the equal-mass bins
    of Nguyen and O'Connor 2015, section 3.2).  A row on a border counts partly on either side, and rows of equal
    confidence share their hits, so that the error does not depend on the order of the rows.

    :param labels: int classes, (rows,); :param outputs: logits, (seeds, rows, classes).
    """
    rankings = [_ranked(labels, logits) for logits in outputs]

    def scores(chosen: np.ndarray) -> np.ndarray:
        counts = row_counts(chosen, len(labels))
        each = [_binned_error(counts[:, order], shared - confidences) for order, confidences, shared in rankings]
        return np.stack(each, axis=1)

    return scores


def _binned_error(counts: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """Return the calibration error of each sample, (samples,).

    :param counts: how often each row is in it, (samples, rows), the rows by confidence.
    :param excess: a row's hits minus its confidence, (rows,).
    """
    total = counts[0].sum()
    borders = np.linspace(0.0, total, BINS + 1)
    sums = zip(np.cumsum(counts, axis=1), np.cumsum(counts * excess, axis=1), strict=True)
    cut = np.stack([_upto(borders, *of_sample) for of_sample in sums])
    return np.abs(np.diff(cut, axis=1)).sum(axis=1) / total


def _upto(borders: np.ndarray, mass: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return the sum over the rows below each border; a row that straddles it counts in part."""
    return np.interp(borders, np.append(0.0, mass), np.append(0.0, sums))


def reliability(labels: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each bin's mean confidence and its accuracy, float64 (:data:`BINS`,), by confidence.

    The bins are those of :func:`calibration_errors`, which averages the distance between the two.
    """
    _, confidences, shared = _ranked(labels, logits)
    rows = len(labels)
    borders, mass = np.linspace(0.0, rows, BINS + 1), np.arange(1.0, rows + 1)
    each = (np.diff(_upto(borders, mass, np.cumsum(values))) for values in (confidences, shared))
    return tuple(sums * BINS / rows for sums in each)


def selective_accuracy(labels: np.ndarray, logits: np.ndarray, coverage: float) -> float:
    """Return the accuracy on the share ``coverage`` of rows with the highest confidence.

    A row on the border counts in part, and rows of equal confidence share their hits.
    """
    _, _, shared = _ranked(labels, logits)
    taken = coverage * len(shared)
    correct = _upto(np.array([taken]), np.arange(1, len(shared) + 1), np.cumsum(shared[::-1]))
    return float(correct[0] / taken)


def best_temperature(labels: np.ndarray, logits: np.ndarray) -> float:
    """Return the temperature, dividing the logits, that minimises the negative log-likelihood.

    A single parameter, which changes no answer (Guo et al. 2017, section 4.2); several labels have the same.  The
    loss is convex in the inverse temperature, so its slope has one root; if that is outside :data:`TEMPERATURES`,
    the nearer end is used.

    :param labels: int classes, (rows,), or 0 and 1 for several labels, (rows, labels).
    :param logits: float, (rows, classes).
    """
    import scipy.optimize

    if labels.ndim == 2:
        labels, logits = labels.reshape(-1).astype(np.int64), of_two(logits.reshape(-1))
    logits = logits.astype(np.float64)
    label_logits = np.take_along_axis(logits, labels[:, None], axis=1)[:, 0]

    def slope(log_temperature: float) -> float:
        expected = (softmax(logits / np.exp(log_temperature)) * logits).sum(axis=1)
        return float((expected - label_logits).mean())

    low, high = np.log(TEMPERATURES)
    # The lower the temperature, the more confident the model, and the more its errors cost.
    if slope(low) <= 0.0:
        return TEMPERATURES[0]
    if slope(high) >= 0.0:
        return TEMPERATURES[1]
    return float(np.exp(scipy.optimize.brentq(slope, low, high, xtol=1e-10)))


def _ranked(labels: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return row numbers by ascending confidence, the confidences, and the hits, all (rows,)."""
    confidences = softmax(logits).max(axis=1)
    _, group, sizes = np.unique(confidences, return_inverse=True, return_counts=True)
    shared = (np.bincount(group, weights=logits.argmax(axis=1) == labels) / sizes)[group]
    order = np.argsort(confidences, kind="stable")
    return order, confidences[order], shared[order]
