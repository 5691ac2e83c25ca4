"""What a student may answer alone: as many of the surest texts as keep a promise of how often it is right.

The surest tenth of dev's texts, the surest two tenths, and so on, are tested in this order, exactly (Clopper and
Pearson 1934), until the answers to one may be right less often than promised.  So all tests together err at most as
often as the level says (fixed sequence testing; Angelopoulos et al. 2021, arXiv 2110.01052).
"""

import math
from collections.abc import Sequence

import numpy as np

from pipeline_lib.base.kinds.probabilities import threshold_at
from pipeline_lib.base.record_files import Record

FIGURE, LEVEL = 0.95, 0.95
"""The share that is promised where none is given, and the confidence in it."""
TENTHS = 10


class Stretch(Record):
    """Dev's surest ``rows``, of which ``right`` are right: those of a confidence above a threshold, not rounded."""

    threshold: float
    rows: int
    right: int


def stretches(confidences: np.ndarray, right: np.ndarray) -> list[Stretch]:
    """Return the surest tenth of the rows, the surest two tenths, and so on, from (rows,) of float and of bool."""
    thresholds = [threshold_at(confidences, 1 - number / TENTHS) for number in range(1, TENTHS + 1)]
    alone = [confidences > threshold for threshold in thresholds]
    return [
        Stretch(threshold=threshold, rows=int(rows.sum()), right=int(right[rows].sum()))
        for threshold, rows in zip(thresholds, alone, strict=True)
    ]


def answers_alone(measured: Sequence[Stretch], figure: float) -> Stretch | None:
    """Return the largest stretch on which at least this share is right, with a confidence of :data:`LEVEL`."""
    held = None
    for each in measured:
        if chance(each.rows, each.rows, figure) > 1 - LEVEL:
            continue  # too few to tell, were they all right
        if chance(each.rows, each.right, figure) > 1 - LEVEL:
            break
        held = each
    return held


def chance(rows: int, right: int, share: float) -> float:
    """Return how probable as many right rows or more are, if each is right with the probability ``share``."""
    ways = [math.lgamma(rows + 1) - math.lgamma(n + 1) - math.lgamma(rows - n + 1) for n in range(right, rows + 1)]
    logs = (n * math.log(share) + (rows - n) * math.log1p(-share) for n in range(right, rows + 1))
    return math.fsum(math.exp(way + each) for way, each in zip(ways, logs, strict=True))
