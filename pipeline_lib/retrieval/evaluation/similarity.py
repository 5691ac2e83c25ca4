"""Untuned similarity: how well the cosine of two sentence vectors solves a pair task.

Wu et al. 2020, section 4.5 and table 5.  Classes are decided by a threshold; it, and which class is above it, are
chosen on the training set for each metric.  Scores are compared by correlation, which needs no threshold.
"""

import numpy as np

from pipeline_lib.base.kinds import KINDS, kind_of, score
from pipeline_lib.base.kinds.classes import best_threshold
from pipeline_lib.shards.vectors import unit


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of vectors, float64 (rows,); both are (rows, width)."""
    return (unit(first.astype(np.float64)) * unit(second.astype(np.float64))).sum(1)


def similarity_scores(
    metrics: list[str], train: tuple[np.ndarray, np.ndarray], dev: tuple[np.ndarray, np.ndarray], positive: int = 1
) -> dict[str, float]:
    """Return each metric on dev of (cosines, labels); thresholds come from train.

    :param positive: the class whose F1 is computed.
    """
    scores = {}
    for metric in metrics:
        if not KINDS[kind_of(metric)].one_of:
            scores[metric] = score(metric, dev[1], dev[0][:, None])
            continue
        cuts = [(s, best_threshold(s * train[0], train[1], metric, positive)) for s in (1, -1)]
        sign, threshold = max(cuts, key=lambda cut: _decided(metric, train, cut, positive))
        scores[metric] = _decided(metric, dev, (sign, threshold), positive)
    return scores


def _decided(metric: str, pairs: tuple[np.ndarray, np.ndarray], cut: tuple[int, float], positive: int) -> float:
    """Return the score of "class 1 if sign × cosine is above the threshold"."""
    values, labels = pairs
    above = cut[0] * values > cut[1]
    return score(metric, labels, np.eye(2)[above.astype(np.int64)], positive)
