"""The best of any number of candidates for each query, computed one block at a time."""

from collections.abc import Iterable

import numpy as np
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.retrieval.scoring import Scorer


def best(
    scorer: Scorer, queries: np.ndarray, blocks: Iterable[tuple[int, np.ndarray]], k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``k`` best candidates of each query, best first; ties go to the lower row.

    Only one block's scores are kept in memory; the blocks may come in any order.

    :param queries: float32 (queries, width).
    :param blocks: of candidates: the first row's number and the vectors, float32 (rows, width).
    :returns: scores, float32, and rows, int64, both (queries, k), or as many as there are.
    """
    if k < 1:
        raise PotstillError(f"k: {k}, but at least one candidate is required. Set it to 1.")
    if not len(queries):
        return np.empty((0, 0), np.float32), np.empty((0, 0), np.int64)
    prepared = scorer.prepare(queries)
    kept = [(np.empty(0, np.float32), np.empty(0, np.int64)) for _ in queries]
    # The score a candidate must reach: after some blocks, few contain one that does.
    least = torch.full((len(queries),), -torch.inf)
    for start, candidates in blocks:
        if not len(candidates):
            continue
        scores = scorer.block(prepared, candidates)
        highest = scores.amax(1).cpu()
        if highest.isnan().any():
            raise PotstillError(
                f"rows {start:,} to {start + len(candidates) - 1:,}: a score is not a number. "
                "Their vectors or the student's weights are damaged: make them again."
            )
        for query in torch.nonzero(highest >= least)[:, 0].tolist():
            kept[query] = _merge(*kept[query], scores[query].cpu().numpy(), start, k)
            if len(kept[query][0]) == k:
                least[query] = float(kept[query][0][-1])
    scores, rows = zip(*kept, strict=True)
    return np.array(scores), np.array(rows)


def _merge(
    scores: np.ndarray, rows: np.ndarray, block: np.ndarray, start: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best of those found so far and those of a block that starts at row ``start``."""
    least = np.partition(block, -k)[-k] if len(block) > k else -np.inf
    if len(scores) == k:
        least = max(least, scores[-1])
    kept = np.flatnonzero(block >= least)
    scores, rows = np.append(scores, block[kept]), np.append(rows, kept + start)
    order = np.lexsort((rows, -scores))[:k]
    return scores[order], rows[order]
