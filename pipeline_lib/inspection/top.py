"""The greatest scores of a stream, in memory for these alone."""

import heapq
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Top:
    """Keeps the places of the ``limit`` greatest scores; of equal ones the first.

    :ivar seen: how many scores were numbers.
    """

    limit: int
    seen: int = 0
    _heap: list[tuple[float, int, tuple[int, int, int]]] = field(default_factory=list)
    _order: int = 0

    def add(self, scores: np.ndarray, part: int, shard: int, start: int) -> None:
        """Add neighbouring rows of one shard.

        :param scores: float64 (rows,); what is not a number is not counted.
        """
        known = ~np.isnan(scores)
        self.seen += int(known.sum())
        if len(self._heap) == self.limit:
            # An equal score that comes later is not kept.
            known &= scores > (self._heap[0][0] if self._heap else np.inf)
        rows = np.flatnonzero(known)
        # Of one batch, too, no more than the limit can stay.
        rows = rows[np.argsort(-scores[rows], kind="stable")[: self.limit]]
        for row in rows.tolist():
            entry = (float(scores[row]), -(self._order + row), (part, shard, start + row))
            if len(self._heap) < self.limit:
                heapq.heappush(self._heap, entry)
            else:
                heapq.heappushpop(self._heap, entry)
        self._order += len(scores)

    def best(self) -> list[tuple[float, tuple[int, int, int]]]:
        """Return (score, (part, shard, row)), the greatest score first."""
        return [(score, place) for score, _, place in sorted(self._heap, reverse=True)]
