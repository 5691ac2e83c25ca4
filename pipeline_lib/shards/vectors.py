"""Sentence vectors and layers' states in shards: how they are stored, and reading them row by row.

They are stored as float32, or in half the bytes as float16.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.shard_sets import ShardSet, check_answers


class StoredVectors:
    """The sentence vectors of several tables, concatenated, read from the mapped files as needed.

    Indexing by an array of row numbers gives float32 (rows, width), or (rows, layers, width) of layers' states.
    """

    def __init__(self, tables: list[tuple[pa.Table, str]], column: str = "vector") -> None:
        """Take tables, each with the column suffix (``""`` or ``_2``) of the vectors to read."""
        self._arrays = [matrix(table[f"{column}{side}"]) for table, side in tables]
        self._ends = np.cumsum([len(array) for array in self._arrays])

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and width; for states rows, layers and width."""
        return len(self), *self._arrays[0].shape[1:]

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        vectors = np.empty((len(rows), *self._arrays[0].shape[1:]), np.float32)
        tables = np.searchsorted(self._ends, rows, side="right")
        for number in np.unique(tables):
            selected = tables == number
            array = self._arrays[number]
            vectors[selected] = array[rows[selected] - (self._ends[number] - len(array))]
        return vectors


@dataclass(frozen=True)
class ChosenVectors:
    """Selected rows of stored vectors, by their numbers, int64 (rows,), in any order, read as needed."""

    stored: StoredVectors
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and width; for states rows, layers and width."""
        return len(self), *self.stored.shape[1:]

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.stored[self.rows[rows]]


def vector_tables(inputs: ShardSet, outputs: ShardSet) -> list[tuple[pa.Table, pa.Table]]:
    """Return (input rows, their vectors) per shard, memory-mapped, checked to belong together."""
    check_answers(inputs.manifest, outputs.manifest)
    return [
        (inputs.read(shard), outputs.read(answer))
        for shard, answer in zip(inputs.manifest.shards, outputs.manifest.shards, strict=True)
    ]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (rows, width) scaled to length 1; a vector of zeros is unchanged."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
