"""A batch's shares: every row once, questions whole, and weights that make up the mean."""

import numpy as np
import pytest
import torch

from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.mixed import MixedBatches
from pipeline_lib.training.objectives import label_loss
from pipeline_lib.training.shares import shares_of
from pipeline_lib.training.teachers.ranking import CandidateBatches, ranking_loss

QUESTIONS = np.repeat(np.arange(7), 3)
LABELS = np.array([1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0])
"""Of seven questions with three candidates each, which are right: one, two, none or all."""
SENTENCES = Sentences.from_lists([[2]] * 21, {"labels": LABELS}, 0)
LOGITS = torch.randn(21, 2, generator=torch.Generator().manual_seed(1))


def test_rows_are_dealt_in_turn() -> None:
    rows = np.array([4, 7, 1, 0, 9])
    shares = shares_of(LengthSorted(SENTENCES, 5, 0), rows, 2)
    assert [share.rows.tolist() for share in shares] == [[4, 1, 9], [7, 0]]
    assert [share.weight for share in shares] == [0.6, 0.4]


def test_who_gets_no_row_computes_one_that_does_not_count() -> None:
    shares = shares_of(LengthSorted(SENTENCES, 5, 0), np.array([4, 7]), 3)
    assert [share.rows.tolist() for share in shares] == [[4], [7], [4]]
    assert [share.weight for share in shares] == [0.5, 0.5, 0.0]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_shares_add_up_to_the_loss_of_the_batch(count: int) -> None:
    ranked = CandidateBatches(SENTENCES, 12, 3, QUESTIONS, answer=1)
    mixed = MixedBatches({"plain": LengthSorted(SENTENCES, 5, 3), "ranked": ranked}, 1)

    def loss(rows: np.ndarray) -> float:
        batch = mixed.collate(rows)
        logits, labels = LOGITS[rows % 21], batch["labels"]
        if batch["task"] == "ranked":
            assert batch["candidates"] == 3
            return float(ranking_loss(logits, labels, 1, 3))
        return float(label_loss(logits, labels))

    for rows in mixed.epoch(0):
        shares = shares_of(mixed, rows, count)
        counted = [share.rows for share in shares if share.weight]
        assert sorted(np.concatenate(counted)) == sorted(rows)
        assert len({mixed.collate(share.rows)["task"] for share in shares}) == 1
        total = sum(share.weight * loss(share.rows) for share in shares)
        assert total == pytest.approx(loss(rows), rel=1e-5)
