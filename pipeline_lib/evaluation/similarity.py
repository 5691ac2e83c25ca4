"""Untuned similarity: how well the cosine of two sentence vectors solves a pair task.

Wu et al. 2020, section 4.5 and table 5.  Classes are decided by a threshold, chosen on the training
set for each metric; scores are compared by correlation, which needs no threshold.
"""

import numpy as np

from pipeline_lib.params import CORRELATIONS, Metric
from pipeline_lib.storage.vectors import unit
from pipeline_lib.tasks.metrics import best_threshold, score


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of vectors, float64 (rows,); both are (rows, width)."""
    return (unit(first.astype(np.float64)) * unit(second.astype(np.float64))).sum(1)


def similarity_scores(
    metrics: list[Metric],
    train: tuple[np.ndarray, np.ndarray],
    dev: tuple[np.ndarray, np.ndarray],
    positive: int = 1,
) -> dict[str, float]:
    """Return each metric on dev of (cosines, labels); thresholds come from train.

    :param positive: the class whose F1 is computed.
    """
    found = {}
    for metric in metrics:
        if metric in CORRELATIONS:
            found[metric] = score(metric, dev[1], dev[0][:, None])
            continue
        above = dev[0] > best_threshold(*train, metric, positive)
        found[metric] = score(metric, dev[1], np.eye(2)[above.astype(np.int64)], positive)
    return found
