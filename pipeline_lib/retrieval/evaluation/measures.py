"""Ranking measures: recall, reciprocal rank and nDCG, each at k.

A ranking is a row of candidate numbers, best first, filled up with -1.  All return a value per query, float64
(queries,); a query without a relevant candidate gets 0.
"""

from collections.abc import Mapping, Sequence, Set

import numpy as np

Relevant = Sequence[Set[int]]
"""The relevant candidates of each query."""
Gains = Sequence[Mapping[int, float]]
"""The gains of each query's judged candidates, at least 0; all others have gain 0."""


def recall(rankings: np.ndarray, relevant: Relevant, k: int) -> np.ndarray:
    """Return the share of the relevant candidates that are among the first ``k`` of int64 (queries, depth).

    Manning et al. 2008, section 8.3; if more than ``k`` are relevant it cannot reach 1.
    """
    hits = [len(answers.intersection(row)) for answers, row in _pairs(rankings, relevant, k)]
    return np.array(hits, np.float64) / np.array([max(len(answers), 1) for answers in relevant])


def reciprocal_rank(rankings: np.ndarray, relevant: Relevant, k: int) -> np.ndarray:
    """Return 1 / rank of the first relevant candidate, or 0 if none is among the first ``k``.

    Its mean over the queries is MRR@k (Voorhees 1999).
    """
    ranks = [
        next((rank for rank, number in enumerate(row, 1) if number in answers), np.inf)
        for answers, row in _pairs(rankings, relevant, k)
    ]
    return 1.0 / np.array(ranks, np.float64)


def ndcg(rankings: np.ndarray, gains: Gains, k: int) -> np.ndarray:
    """Return the discounted cumulative gain at ``k``, divided by that of the ideal order.

    Järvelin and Kekäläinen 2002, with the discount log₂(rank + 1) from the first rank on, and
    linear, not exponential, gain.  With gains of 0 and 1 it is the binary nDCG.
    """
    actual = [[query_gains.get(number, 0.0) for number in row] for query_gains, row in _pairs(rankings, gains, k)]
    ideal = [sorted(query_gains.values(), reverse=True)[:k] for query_gains in gains]
    reached, reachable = (np.array([_discounted(row) for row in rows]) for rows in (actual, ideal))
    return np.divide(reached, reachable, out=np.zeros_like(reached), where=reachable > 0)


def against_judgements(rankings: np.ndarray, relevant: Relevant, gains: Gains, at: Sequence[int]) -> dict[str, float]:
    """Return the mean over queries of recall and nDCG at each k, and of MRR at the largest k."""
    return _measured(rankings, relevant, {k: (relevant, gains) for k in at})


def against_order(rankings: np.ndarray, orders: Sequence[Sequence[int]], at: Sequence[int]) -> dict[str, float]:
    """Return how close rankings come to another order, such as a teacher's, by the same measures.

    Recall at k is the share of the order's first ``k`` found among the ranking's first ``k``; MRR looks for the
    order's first; nDCG at k gives the order's first candidate gain k, its second k − 1, down to 1 for its k-th.

    :param orders: each query's candidate numbers in that order, possibly few.
    """
    descending = {k: [{n: float(k - rank) for rank, n in enumerate(order[:k])} for order in orders] for k in at}
    judged = {k: ([{*gains} for gains in at_k], at_k) for k, at_k in descending.items()}
    return _measured(rankings, [{*order[:1]} for order in orders], judged)


def _measured(rankings: np.ndarray, first: Relevant, judged: Mapping[int, tuple[Relevant, Gains]]) -> dict[str, float]:
    """Return the mean measures; what MRR looks for is ``first``, and what the others count is judged by k."""
    measures = {f"recall@{k}": recall(rankings, relevant, k) for k, (relevant, _) in judged.items()}
    measures |= {f"mrr@{max(judged)}": reciprocal_rank(rankings, first, max(judged))}
    measures |= {f"ndcg@{k}": ndcg(rankings, gains, k) for k, (_, gains) in judged.items()}
    return {name: float(values.mean()) for name, values in measures.items()}


def _pairs(rankings: np.ndarray, judged: Sequence, k: int) -> zip:
    return zip(judged, rankings[:, :k].tolist(), strict=True)


def _discounted(gains: Sequence[float]) -> float:
    return float(np.sum(np.array(gains) / np.log2(np.arange(2, len(gains) + 2))))
