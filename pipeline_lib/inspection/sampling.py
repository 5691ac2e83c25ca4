"""Draws a random sample of a set's rows, with only the sample in memory."""

import numpy as np

from pipeline_lib.base.hashing import salt, uniform
from pipeline_lib.inspection.filters import Filter
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.inspection.top_k import Top


def sample(
    rows: JoinedRows, size: int, seed: int, wanted: Filter
) -> tuple[list[tuple[int, int]], int]:
    """Draw rows uniformly at random, without replacement.

    Each row gets a pseudo-random number from its content key and the seed, and the rows with the
    largest numbers are kept (bottom-k sampling; Cohen and Kaplan 2007, section 2).  If a set grows,
    the same rows are drawn again, except those that new rows displace.

    :return: (shard, row) in the set's order, and how many rows the filter selected.
    """
    top, purpose = Top(size), salt(seed, "sample")
    for batch in rows.batches():
        drawn = uniform(_keys(batch), purpose)
        top.add(np.where(wanted.wants(batch), drawn, np.nan), 0, batch.shard, batch.start)
    return sorted((shard, row) for _, (_, shard, row) in top.best()), top.seen


def _keys(batch: RowBatch) -> np.ndarray:
    """Return the content keys, or the row numbers if there are none, uint64 (rows,)."""
    if "key" in batch.table.column_names:
        return batch.table["key"].to_numpy()
    return np.arange(batch.first, batch.first + len(batch), dtype=np.uint64)
