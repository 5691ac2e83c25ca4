"""The best candidates of each query, against numpy's stable sort of the whole matrix."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.retrieval.scoring import best


class Products:
    """Scores by the inner product: of whole numbers it is exact, whatever the block."""

    def prepare(self, queries: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(queries)

    def block(self, prepared: torch.Tensor, candidates: np.ndarray) -> torch.Tensor:
        return prepared @ torch.from_numpy(candidates).T


def blocks(candidates: np.ndarray, rows: int) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, len(candidates), rows):
        yield start, candidates[start : start + rows]


def drawn(seed: int, rows: int, width: int = 2) -> np.ndarray:
    """Return vectors of few whole numbers, of which many are equal."""
    return np.random.default_rng(seed).integers(-1, 2, (rows, width)).astype(np.float32)


@pytest.mark.parametrize("k", [1, 3, 40, 41, 100])
@pytest.mark.parametrize("rows", [1, 7, 40, 64])
def test_the_best_are_those_of_a_stable_sort(rows: int, k: int) -> None:
    queries, candidates = drawn(1, 5), drawn(2, 41)
    found, numbers = best(Products(), queries, blocks(candidates, rows), k)
    whole = queries @ candidates.T
    order = np.argsort(-whole, axis=1, kind="stable")[:, :k]
    assert found.dtype == np.float32 and numbers.dtype == np.int64
    np.testing.assert_array_equal(numbers, order)
    np.testing.assert_array_equal(found, np.take_along_axis(whole, order, 1))


def test_blocks_may_come_in_any_order_and_leave_rows_out() -> None:
    queries, candidates = drawn(1, 5), drawn(2, 40)
    shuffled = list(blocks(candidates, 8))[::-1]
    del shuffled[2]
    kept = np.r_[0:16, 24:40]
    _, numbers = best(Products(), queries, shuffled, 10)
    order = np.argsort(-(queries @ candidates[kept].T), axis=1, kind="stable")[:, :10]
    np.testing.assert_array_equal(numbers, kept[order])


def test_without_candidates_or_queries_nothing_is_found() -> None:
    for queries, found in ((drawn(1, 3), []), (drawn(1, 0), blocks(drawn(2, 9), 4))):
        scores, rows = best(Products(), queries, found, 4)
        assert scores.shape == rows.shape and scores.size == 0
        assert len(scores) == len(queries)


def test_damaged_vectors_and_no_candidate_to_find_are_errors() -> None:
    candidates = drawn(2, 9)
    candidates[6] = np.nan
    with pytest.raises(PotstillError, match="rows 4 to 7: a score is not a number"):
        best(Products(), drawn(1, 3), blocks(candidates, 4), 2)
    with pytest.raises(PotstillError, match="k: 0"):
        best(Products(), drawn(1, 3), blocks(drawn(2, 9), 4), 0)
