"""Untuned similarity: how far the cosine of two sentence vectors tells what a pair task asks.

Wu et al. 2020, section 4.5 and table 5.  A class is decided by a threshold, which is chosen on the
training set for each metric; a score is compared by correlation, which needs none.
"""

import numpy as np

from pipeline_lib.evaluation.metrics import from_confusion, score
from pipeline_lib.params import CORRELATIONS, Metric
from pipeline_lib.stored_vectors import unit


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of vectors, float64 (rows,); both are (rows, width)."""
    return (unit(first.astype(np.float64)) * unit(second.astype(np.float64))).sum(1)


def best_threshold(
    values: np.ndarray, labels: np.ndarray, metric: Metric, positive: int = 1
) -> float:
    """Return the threshold at which "class 1 where the value is above" scores best.

    :param values: float (rows,); :param labels: 0 or 1, (rows,).
    :param positive: the class whose F1 is taken.
    """
    order = np.argsort(-values, kind="stable")
    ordered, hits = values[order], np.cumsum(labels[order] == 1)
    ones, rows = int(hits[-1]), len(labels)
    above = np.arange(1, rows + 1)
    # One confusion matrix per place at which the list can be cut: label first, answer second.
    confusion = np.empty((rows, 2, 2))
    confusion[:, 1, 1], confusion[:, 0, 1] = hits, above - hits
    confusion[:, 1, 0], confusion[:, 0, 0] = ones - hits, rows - ones - (above - hits)
    scores = from_confusion(metric, confusion, positive)
    # Equal values cannot be cut apart.
    scores[:-1][ordered[:-1] == ordered[1:]] = -np.inf
    best = int(scores.argmax())
    below = ordered[best + 1] if best + 1 < rows else ordered[best] - 1.0
    return float((ordered[best] + below) / 2)


def similarity_scores(
    metrics: list[Metric],
    train: tuple[np.ndarray, np.ndarray],
    dev: tuple[np.ndarray, np.ndarray],
    positive: int = 1,
) -> dict[str, float]:
    """Return each metric on dev of (cosines, labels); thresholds come from train.

    :param positive: the class whose F1 is taken.
    """
    found = {}
    for metric in metrics:
        if metric in CORRELATIONS:
            found[metric] = score(metric, dev[1], dev[0][:, None])
            continue
        above = dev[0] > best_threshold(*train, metric, positive)
        found[metric] = score(metric, dev[1], np.eye(2)[above.astype(np.int64)], positive)
    return found
