"""Sentences of different lengths as flat arrays of ids; what exported students need of it imports no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

PAD_ID = 0
"""The id of a student's padding."""
Targets = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Sentences:
    """Token or word ids of many sentences, concatenated, and their targets.

    :ivar ids: int32, flat; :ivar offsets: int64, shape (sentences + 1,).
    :ivar targets: name (``labels``, ``logits``) to an array with one row per sentence.
    :ivar pad_id: what pads the shorter sentences of a batch.
    :ivar segments: which sentence of a pair each token belongs to, int32, flat; or None.
    :ivar second: the second sentences of pairs that are read separately (its targets are not used).
    """

    ids: np.ndarray
    offsets: np.ndarray
    targets: Targets
    pad_id: int
    segments: np.ndarray | None = None
    second: "Sentences | None" = None

    @classmethod
    def from_lists(cls, ids: Sequence[Sequence[int]], targets: Targets, pad_id: int) -> "Sentences":
        """Flatten lists of ids."""
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in ids], dtype=np.int64)])
        flat = np.fromiter(chain.from_iterable(ids), np.int32)
        return cls(flat, offsets, targets, pad_id)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Words or tokens per sentence, int64; of a pair, those of its longer sentence.

        A batch of pairs has as many columns as its longest sentence has words, first or second:
        sorted by the sum of both, pairs would be padded more.
        """
        lengths = np.diff(self.offsets)
        return lengths if self.second is None else np.maximum(lengths, self.second.lengths)

    def padded(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return these rows as arrays, padded at the end.

        ``ids`` int64 (rows, longest) and ``lengths`` int64 (rows,); ``segments`` like ``ids``;
        ``ids_2`` and ``lengths_2`` of second sentences.
        """
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        columns = np.arange(lengths.max())
        inside = columns < lengths[:, None]
        positions = np.where(inside, self.offsets[rows][:, None] + columns, 0)
        ids = np.where(inside, self.ids[positions], self.pad_id)
        arrays = {"ids": ids.astype(np.int64), "lengths": lengths}
        if self.segments is not None:
            segments = np.where(inside, self.segments[positions], 0)
            arrays["segments"] = segments.astype(np.int64)
        if self.second is not None:
            second = self.second.padded(rows)
            arrays |= {"ids_2": second["ids"], "lengths_2": second["lengths"]}
        return arrays

    def batch(self, rows: np.ndarray) -> dict[str, "torch.Tensor"]:
        """Return what :meth:`padded` returns, and the targets' rows, as tensors."""
        import torch

        targets = {name: values[rows] for name, values in self.targets.items()}
        return {n: torch.from_numpy(values) for n, values in (self.padded(rows) | targets).items()}


def to_device(batch: Mapping[str, Any], device: "torch.device") -> dict[str, Any]:
    """Return a batch's tensors on a device; lengths stay on the CPU, where they are read.

    On an accelerator they arrive while it computes: nothing waits.  Values that are not tensors,
    such as the name of the batch's task, are left as they are.
    """
    import torch

    def moves(name: str, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and not name.startswith("lengths")

    def moved(value: "torch.Tensor") -> "torch.Tensor":
        # Only from memory that cannot be swapped are copies asynchronous.
        pinned = value.pin_memory() if device.type == "cuda" else value
        return pinned.to(device, non_blocking=True)

    return {name: moved(value) if moves(name, value) else value for name, value in batch.items()}
