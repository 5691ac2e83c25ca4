"""Each epoch's batches: sorted by length, shuffled by seed."""

from dataclasses import dataclass

import numpy as np
import torch

from pipeline_lib.text.ragged import Sentences


@dataclass(frozen=True)
class LengthSorted:
    """Batches of sentences of similar length, in an order reshuffled every epoch."""

    sentences: Sentences
    batch_size: int
    seed: int

    def epoch(self, number: int) -> list[np.ndarray]:
        """Return the row numbers of each batch; a pure function of (seed, number)."""
        generator = np.random.default_rng([self.seed, number])
        order = generator.permutation(len(self.sentences))
        order = order[np.argsort(self.sentences.lengths[order], kind="stable")]
        batches = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        return [batches[i] for i in generator.permutation(len(batches))]

    def collate(self, rows: np.ndarray) -> dict[str, torch.Tensor]:
        """Return the tensors of one batch; see :meth:`Sentences.batch`."""
        return self.sentences.batch(rows)
