"""Selects rows of a set, the first, or the least sure, with only these in memory."""

import heapq
from dataclasses import dataclass, field

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.inspection.distances import entropies
from pipeline_lib.inspection.filters import Filter
from pipeline_lib.inspection.joined import JoinedRows, RowBatch


@dataclass
class Top:
    """Keeps the locations of the ``limit`` highest scores, among equal ones the first, of all ``seen``."""

    limit: int
    seen: int = 0
    _heap: list[tuple[float, int, tuple[int, int, int]]] = field(default_factory=list)
    _order: int = 0

    def add(self, scores: np.ndarray, number: int, shard: int, start: int) -> None:
        """Add scores, float64 (rows,), of consecutive rows of a shard of a numbered set; NaN is not counted."""
        candidates = ~np.isnan(scores)
        self.seen += int(candidates.sum())
        if len(self._heap) == self.limit:
            # An equal score that comes later is not kept.
            candidates &= scores > (self._heap[0][0] if self._heap else np.inf)
        rows = np.flatnonzero(candidates)
        # No more than the limit can be kept from one batch.
        rows = rows[np.argsort(-scores[rows], kind="stable")[: self.limit]]
        for row in rows.tolist():
            entry = (float(scores[row]), -(self._order + row), (number, shard, start + row))
            if len(self._heap) < self.limit:
                heapq.heappush(self._heap, entry)
            else:
                heapq.heappushpop(self._heap, entry)
        self._order += len(scores)

    def best(self) -> list[tuple[float, tuple[int, int, int]]]:
        """Return (score, (number of the set, shard, row)), the highest score first."""
        return [(score, location) for score, _, location in sorted(self._heap, reverse=True)]


def leading(rows: JoinedRows, size: int, chosen: Filter, uncertain: bool) -> list[tuple[int, int]]:
    """Return the first rows; with ``uncertain``, those that the teacher is least sure of.

    Equally uncertain rows keep their order, and rows without an answer come last.

    :return: (shard, row).
    """
    if uncertain and rows.classes is None:
        raise PotstillError(
            f"{rows.name}: --uncertain needs the teacher's outputs for this set; there are none. "
            "Run `distill run`, or name a transfer set that has them (`distill shards ls`)."
        )
    if uncertain and rows.is_scored:
        raise PotstillError(
            f"{rows.name}: --uncertain sorts by the entropy over classes; this is a regression. Leave it out."
        )

    def score(batch: RowBatch) -> np.ndarray:
        if not uncertain:
            return np.zeros(len(batch))
        return np.nan_to_num(entropies(batch.logits, batch.kind), nan=-1.0)

    top = Top(size)
    for batch in rows.batches():
        top.add(np.where(chosen.wants(batch), score(batch), np.nan), 0, batch.shard, batch.start)
    return [(shard, row) for _, (_, shard, row) in top.best()]
