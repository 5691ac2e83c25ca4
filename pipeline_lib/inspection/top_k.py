"""Keeps the highest scores of a stream, with only these in memory."""

import heapq
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Top:
    """Keeps the places of the ``limit`` highest scores; among equal ones, the first.

    :ivar seen: how many scores were not NaN.
    """

    limit: int
    seen: int = 0
    _heap: list[tuple[float, int, tuple[int, int, int]]] = field(default_factory=list)
    _order: int = 0

    def add(self, scores: np.ndarray, part: int, shard: int, start: int) -> None:
        """Add consecutive rows of one shard.

        :param scores: float64 (rows,); NaN is not counted.
        """
        known = ~np.isnan(scores)
        self.seen += int(known.sum())
        if len(self._heap) == self.limit:
            # An equal score that comes later is not kept.
            known &= scores > (self._heap[0][0] if self._heap else np.inf)
        rows = np.flatnonzero(known)
        # No more than the limit can be kept from one batch.
        rows = rows[np.argsort(-scores[rows], kind="stable")[: self.limit]]
        for row in rows.tolist():
            entry = (float(scores[row]), -(self._order + row), (part, shard, start + row))
            if len(self._heap) < self.limit:
                heapq.heappush(self._heap, entry)
            else:
                heapq.heappushpop(self._heap, entry)
        self._order += len(scores)

    def best(self) -> list[tuple[float, tuple[int, int, int]]]:
        """Return (score, (part, shard, row)), the highest score first."""
        return [(score, location) for score, _, location in sorted(self._heap, reverse=True)]
