"""Batches of several tasks: one task each, merged, shuffled and drawn by (seed, epoch)."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.ragged import Sentences, to_device
from pipeline_lib.training.mixed import MixedBatches
from pipeline_lib.training.teachers.ranking import CandidateBatches, questions_of, ranking_loss

SIZES = {"small": 9, "middle": 30, "large": 203}
BATCHES = {"small": 3, "middle": 8, "large": 51}
"""Batches of four rows that each has."""


def make(seed: int = 5, **sizes: int) -> MixedBatches:
    parts = {}
    for offset, (task, count) in enumerate((sizes or SIZES).items()):
        ids = [[2] * (1 + row % 7) for row in range(count)]
        # Labels tell every row of every task from all others.
        labels = 1000 * offset + np.arange(count)
        parts[task] = LengthSorted(Sentences.from_lists(ids, {"labels": labels}, 0), 4, seed)
    return MixedBatches(parts, seed)


def collated(batches: MixedBatches, epoch: int) -> list[tuple[str, list[int]]]:
    found = [batches.collate(rows) for rows in batches.epoch(epoch)]
    return [(batch["task"], batch["labels"].tolist()) for batch in found]


def test_every_row_once_per_epoch_and_one_task_per_batch() -> None:
    batches = make()
    for epoch in range(3):
        found = collated(batches, epoch)
        assert Counter(task for task, _ in found) == BATCHES
        for offset, (task, count) in enumerate(SIZES.items()):
            labels = [label for own, rows in found if own == task for label in rows]
            assert sorted(labels) == list(range(1000 * offset, 1000 * offset + count))
    # Order is a function of seed and epoch.
    assert collated(make(), 2) == collated(make(), 2)
    different = [collated(make(seed), epoch) for seed, epoch in ((5, 2), (5, 3), (6, 2))]
    assert all(a != b for i, a in enumerate(different) for b in different[:i])
    batches = make()
    batches.epoch(0)
    assert collated(batches, 2) == different[0]


def test_tasks_are_merged_and_keep_their_names() -> None:
    order = [task for task, _ in collated(make(), 0)]
    positions = [i for i, task in enumerate(order) if task == "middle"]
    assert positions[-1] - positions[0] > len(positions)
    assert order != [task for task, _ in collated(make(), 1)]
    # The task name comes through to the device.
    batches = make()
    batch = to_device(batches.collate(batches.epoch(0)[0]), torch.device("meta"))
    assert batch["task"] in SIZES
    assert batch["ids"].device.type == "meta" and batch["lengths"].device.type == "cpu"
    with pytest.raises(PotstillError, match=r"empty: no rows to train on\. Remove the task"):
        make(full=3, empty=0)
    # One task alone is as without others.
    mixed = make(alone=21)
    own = {tuple(rows) for _, rows in collated(mixed, 4)}
    assert own == {tuple(rows.tolist()) for rows in mixed.parts["alone"].epoch(4)}


QUESTIONS = np.array([7, 0, 1, 0, 2, 1, 2, 3, 2, 4, 5, 5, 6])
"""Of 13 rows: three questions have two candidates, one has three, the others have one."""


def make_ranking(batch_size: int, questions: np.ndarray = QUESTIONS, seed: int = 3) -> CandidateBatches:
    ids = [[2] * (1 + row % 5) for row in range(len(questions))]
    labels = np.arange(len(questions))
    sentences = Sentences.from_lists(ids, {"labels": labels}, 0)
    return CandidateBatches(sentences, batch_size, seed, questions)


@pytest.mark.parametrize("batch_size", [1, 2, 4, 100])
def test_batches_hold_whole_questions(batch_size: int) -> None:
    batches, counts = make_ranking(batch_size), np.bincount(QUESTIONS)
    for number in range(3):
        epoch = batches.epoch(number)
        assert sorted(np.concatenate(epoch).tolist()) == list(range(len(QUESTIONS)))
        assert len(epoch) == len(batches.epoch(0))
        for rows in epoch:
            count = batches.collate(rows)["candidates"]
            assert len(rows) <= max(batch_size, count)
            own = QUESTIONS[rows].reshape(-1, count)
            assert (own == own[:, :1]).all() and (counts[own] == count).all()


def test_order_is_a_function_of_seed_and_epoch_ranking() -> None:
    orders = [[rows.tolist() for rows in make_ranking(2, seed=s).epoch(e)] for s, e in ((1, 2), (1, 2), (1, 3), (2, 2))]
    assert orders[0] == orders[1] and orders[0] not in orders[2:]
    # Questions alike in length go together.
    batches = make_ranking(4, np.repeat(np.arange(20), 2))
    longest = [batches.sentences.lengths[rows].reshape(-1, 2).max(1) for rows in batches.epoch(0)]
    assert all(np.ptp(lengths) <= 1 for lengths in longest)
    ranked, other = make_ranking(4), LengthSorted(make_ranking(4).sentences, 4, 3)
    mixed = MixedBatches({"ranked": ranked, "other": other}, 1)
    found = [mixed.collate(rows) for rows in mixed.epoch(0)]
    assert len(found) == len(ranked.epoch(0)) + len(other.epoch(0))
    assert {b["task"] for b in found if "candidates" in b} == {"ranked"}
    # Questions are numbered as they come.
    pairs = [("who?", "he"), ("where?", "there"), ("who?", "she"), ("when?", "now")]
    assert questions_of(pairs).tolist() == [0, 1, 0, 2]


def test_loss_by_hand() -> None:
    # Relevances by the logits' difference: of each question two candidates, the first is right.
    differences = torch.tensor([2.0, -1.0, 0.5, 0.5])
    logits = torch.stack([differences, torch.zeros(4)], 1)
    labels = torch.tensor([0, 1, 0, 1])
    relevance = [1 / (1 + math.exp(-float(d))) for d in differences]
    expected = [
        -math.log(math.exp(right) / (math.exp(right) + math.exp(wrong)))
        for right, wrong in (relevance[:2], relevance[2:])
    ]
    found = ranking_loss(logits, labels, answer=0, candidates=2)
    assert found.item() == pytest.approx(sum(expected) / 2)
    # Of one right and one wrong answer, to find either is to find the other.
    assert ranking_loss(logits, labels, 1, 2).item() == pytest.approx(found.item())
    # Two right answers are not compared.
    relevance = torch.tensor([0.9, 0.6, 0.2])
    logits = torch.stack([torch.logit(relevance), torch.zeros(3)], 1)
    found = ranking_loss(logits, torch.tensor([0, 0, 1]), answer=0, candidates=3)
    expected = [math.log(1 + math.exp(0.2 - right)) for right in (0.9, 0.6)]
    assert found.item() == pytest.approx(sum(expected) / 2)
    # What cannot be compared counts by its cross entropy.
    logits = torch.randn(6, 2, generator=torch.Generator().manual_seed(1), requires_grad=True)
    labels = torch.tensor([0, 0, 1, 1, 0, 1])
    found = ranking_loss(logits, labels, answer=0, candidates=2)
    alone = F.cross_entropy(logits[:4], labels[:4], reduction="sum")
    compared = ranking_loss(logits[4:], labels[4:], 0, 2)
    assert found.item() == pytest.approx((alone + compared).item() / 5)
    found.backward()
    assert torch.isfinite(logits.grad).all() and (logits.grad != 0).all()
    single = ranking_loss(logits, labels, answer=0, candidates=1)
    assert single.item() == pytest.approx(F.cross_entropy(logits, labels).item())
