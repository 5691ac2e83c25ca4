"""What takes turns in training_rates.py: a loop with its batches, its number format and threads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from harness import tokens_per_row
from training_works import Work

from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.loop import Batch

WARM_UP = 2
"""Steps before the clock starts."""


@dataclass(frozen=True)
class Contestant:
    """One way to train: a loop, its batches, a number format, a number of threads.

    :ivar train: (batches, precision) to the time at the end of each step, in seconds.
    """

    work: Work
    loop: str
    batches: Sequence[np.ndarray]
    precision: str
    threads: int
    train: Callable[[Sequence[np.ndarray], str], Sequence[float]]

    @property
    def name(self) -> str:
        """What it is called in the results."""
        count = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{self.work.name}: {self.loop}, {self.precision}, {count}"

    @property
    def tokens(self) -> int:
        """Real tokens of a turn."""
        return int(tokens_per_row(self.work.sentences)[np.concatenate(self.batches)].sum())

    @property
    def padding(self) -> float:
        """The share of padding in its batches."""
        places = sum(_places(self.work.sentences, rows) for rows in self.batches)
        return 1 - self.tokens / places

    def rate(self) -> float:
        """Train from scratch; return tokens per second."""
        torch.set_num_threads(self.threads)
        # Some to warm up, and one more at the end, so that the loop's final work is not timed.
        batches = [*self.batches[:WARM_UP], *self.batches, self.batches[-1]]
        ends = self.train(batches, self.precision)
        return self.tokens / (ends[-2] - ends[-2 - len(self.batches)])


@dataclass(frozen=True)
class Given:
    """Batches given one by one, as the loop expects them."""

    sentences: Sentences
    batches: Sequence[np.ndarray]

    def epoch(self, number: int) -> Sequence[np.ndarray]:
        """Return the batches, the same in every epoch."""
        return self.batches

    def collate(self, rows: np.ndarray) -> Batch:
        """Return the tensors of one batch."""
        return self.sentences.batch(rows)


def _places(sentences: Sentences, rows: np.ndarray) -> int:
    """Return the size of a batch in tokens, with padding; separately read sentences are stacked."""
    sides = [sentences, *([sentences.second] if sentences.second else [])]
    return len(rows) * len(sides) * max(int(np.diff(s.offsets)[rows].max()) for s in sides)
