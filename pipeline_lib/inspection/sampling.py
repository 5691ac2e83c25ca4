"""A random sample of a set's rows, in memory for the sample alone."""

import numpy as np

from pipeline_lib.base.hashing import salt, uniform
from pipeline_lib.inspection.filters import Filter
from pipeline_lib.inspection.sets import Batch, JoinedSet
from pipeline_lib.inspection.top import Top


def sample(
    rows: JoinedSet, size: int, seed: int, wanted: Filter
) -> tuple[list[tuple[int, int]], int]:
    """Draw rows at random without replacement, each as likely as any other.

    Every row draws a number from its content key and the seed, and the rows with the greatest ones
    are kept (bottom-k sampling; Cohen and Kaplan 2007, section 2).  So the same rows are drawn from
    a set that grew, as far as the new rows leave them in.

    :return: (shard, row) in the set's order, and how many rows were wanted.
    """
    top, purpose = Top(size), salt(seed, "sample")
    for batch in rows.batches():
        drawn = uniform(_keys(batch), purpose)
        top.add(np.where(wanted.wants(batch), drawn, np.nan), 0, batch.shard, batch.start)
    return sorted((shard, row) for _, (_, shard, row) in top.best()), top.seen


def _keys(batch: Batch) -> np.ndarray:
    """Return the content keys, or where there are none the row numbers, uint64 (rows,)."""
    if "key" in batch.table.column_names:
        return batch.table["key"].to_numpy()
    return np.arange(batch.first, batch.first + len(batch), dtype=np.uint64)
