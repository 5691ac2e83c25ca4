"""Batches of several tasks in one order, each batch from a single task.

As in Liu 2020 (the thesis), section 4.1.1 and algorithm 1, after MT-DNN (Liu et al. 2019, algorithm
1): every epoch the tasks' mini-batches are merged and shuffled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.training.loop import Batch


@dataclass(frozen=True)
class MixedBatches:
    """The batches of several tasks, merged and reshuffled every epoch.

    Rows are numbered consecutively across all parts, so a batch's row numbers identify its task.

    :ivar parts: each task's batches, by task name.
    """

    parts: Mapping[str, LengthSorted]
    seed: int

    def __post_init__(self) -> None:
        empty = [task for task, part in self.parts.items() if len(part.sentences) == 0]
        if empty:
            raise PotstillError(
                f"{', '.join(empty)}: no rows to train on. Remove the task from the group, or correct its training set."
            )

    def epoch(self, number: int) -> list[np.ndarray]:
        """Return the row numbers of each batch; a pure function of (seed, number)."""
        # The third number separates this stream from those of parts with the same seed.
        generator = np.random.default_rng([self.seed, number, 1])
        merged = [rows for task in self.parts for rows in self._pass(task, number)]
        return [merged[i] for i in generator.permutation(len(merged))]

    def collate(self, rows: np.ndarray) -> Batch:
        """Return the tensors of one batch, and its task's name under ``task``."""
        task, start = next(item for item in reversed(self._starts.items()) if item[1] <= rows[0])
        return {**self.parts[task].collate(rows - start), "task": task}

    def _pass(self, task: str, number: int) -> list[np.ndarray]:
        return [rows + self._starts[task] for rows in self.parts[task].epoch(number)]

    @cached_property
    def _starts(self) -> dict[str, int]:
        """Each task's first row number, in the order of the tasks."""
        sizes = [len(part.sentences) for part in self.parts.values()]
        return dict(zip(self.parts, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
