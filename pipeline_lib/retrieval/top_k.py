"""The best of many candidates for each query, however many they are: one block at a time."""

from collections.abc import Iterable

import numpy as np

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.retrieval.scoring import Scorer


def best(
    scorer: Scorer, queries: np.ndarray, blocks: Iterable[tuple[int, np.ndarray]], k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``k`` best candidates of each query, the best first; of equals the lower row.

    No more than one block's scores are kept, in whatever order the blocks come.

    :param queries: float32 (queries, width).
    :param blocks: of the candidates: the first row's number and the vectors, float32 (rows, width).
    :returns: scores, float32, and rows, int64, both (queries, k), or as many as there are.
    :raises DistilleryError: if ``k`` is below 1, or a score is not a number.
    """
    if k < 1:
        raise DistilleryError(f"k: {k}, but at least one candidate is to be found. Set it to 1.")
    prepared = scorer.prepare(queries)
    scores = np.empty((len(queries), 0), np.float32)
    rows = np.empty((len(queries), 0), np.int64)
    for start, candidates in blocks:
        if not len(candidates):
            continue
        found = scorer.block(prepared, candidates).cpu().numpy()
        if np.isnan(found).any():
            raise DistilleryError(
                f"rows {start:,} to {start + len(candidates) - 1:,}: a score is not a number. "
                "Their vectors or the student's weights are damaged: make them again."
            )
        numbers = np.broadcast_to(np.arange(start, start + len(candidates)), found.shape)
        scores, rows = np.hstack([scores, found]), np.hstack([rows, numbers])
        order = np.lexsort((rows, -scores))[:, :k]
        scores, rows = (np.take_along_axis(part, order, 1) for part in (scores, rows))
    return scores, rows
