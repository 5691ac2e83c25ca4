"""Batches of several tasks: one task each, merged, shuffled and drawn by (seed, epoch)."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.ragged import Sentences, to_device
from pipeline_lib.training.mixed import MixedBatches

SIZES = {"small": 9, "middle": 30, "large": 203}
BATCHES = {"small": 3, "middle": 8, "large": 51}
"""Batches of four rows that each has."""


def make(sampling: Any = "all", seed: int = 5, **sizes: int) -> MixedBatches:
    parts = {}
    for offset, (task, count) in enumerate((sizes or SIZES).items()):
        ids = [[2] * (1 + row % 7) for row in range(count)]
        # Labels tell every row of every task from all others.
        labels = 1000 * offset + np.arange(count)
        parts[task] = LengthSorted(Sentences.from_lists(ids, {"labels": labels}, 0), 4, seed)
    return MixedBatches(parts, sampling, seed)


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
    # A task without rows.
    with pytest.raises(PotstillError, match=r"empty: no rows to train on\. Remove the task"):
        make(full=3, empty=0)
    # One task alone is as without others.
    mixed = make(alone=21)
    own = {tuple(rows) for _, rows in collated(mixed, 4)}
    assert own == {tuple(rows.tolist()) for rows in mixed.parts["alone"].epoch(4)}


@pytest.mark.parametrize("sampling", ["all", 0.0, 0.5])
def test_order_is_a_function_of_seed_and_epoch(sampling: Any) -> None:
    assert collated(make(sampling), 2) == collated(make(sampling), 2)
    different = [collated(make(sampling, seed), epoch) for seed, epoch in ((5, 2), (5, 3), (6, 2))]
    assert all(a != b for i, a in enumerate(different) for b in different[:i])
    batches = make(sampling)
    batches.epoch(0)
    assert collated(batches, 2) == different[0]


@pytest.mark.parametrize("sampling", [0.0, 0.5, 1.0])
def test_tasks_are_drawn_by_a_power_of_their_rows(sampling: float) -> None:
    batches = make(sampling)
    epochs = [collated(batches, epoch) for epoch in range(60)]
    assert all(len(epoch) == sum(BATCHES.values()) for epoch in epochs)
    drawn = Counter(task for epoch in epochs for task, _ in epoch)
    total = sum(size**sampling for size in SIZES.values())
    for task, size in SIZES.items():
        # 3,720 draws: four standard deviations are at most 0.033.
        assert drawn[task] / drawn.total() == pytest.approx(size**sampling / total, abs=0.033)


def test_a_batch_comes_again_only_after_all_of_its_task() -> None:
    small = [rows for task, rows in collated(make(0.0), 0) if task == "small"]
    assert len(small) > 2 * BATCHES["small"]
    passes = [small[start : start + 3] for start in range(0, len(small) - 3, 3)]
    for own in passes:
        assert sorted(label for rows in own for label in rows) == list(range(9))
    assert passes[0] != passes[1]
