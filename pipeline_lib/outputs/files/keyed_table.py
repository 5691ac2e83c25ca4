"""What teachers' files give to texts, looked up by the texts' content.

It is one Arrow file, written as it is read, with an index from content keys to its rows beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from pipeline_lib.base.files import read_record, sha256_file, sha256_json, write_json
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.seals import check_sealed
from pipeline_lib.shards.columns import column_suffixes
from pipeline_lib.shards.masking import signed_sentences
from pipeline_lib.shards.shard_sets import read_shard, write_shard
from pipeline_lib.shards.vectors import StoredVectors

ANSWERS, RECORD = "answers.arrow", "answers.json"
"""Two files in a table's folder: the values, and what is known about them."""
SEPARATOR = "\x1f"
"""Joins the two sentences of a pair before they are hashed."""
PLACES = "places.arrow"
"""The third file: the index, see :class:`KeyedTable`."""


class MappedValues(StoredVectors):
    """The values of one Arrow file of many batches, each memory-mapped on its own, not copied."""

    def __init__(self, path: Path) -> None:
        """Map a file with a column of fixed-size lists of float32."""
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        columns = [reader.get_batch(n).column(0) for n in range(reader.num_record_batches)]
        # Combining a table column's chunks copies it, even if there is only one.
        self._set([column.flatten().to_numpy().reshape(len(column), -1) for column in columns])


@dataclass(frozen=True)
class Origins:
    """Where values were read.

    :ivar files: each with the number of its first value; :ivar numbers: the values' rows in their files, int64 (rows,).
    """

    files: Sequence[tuple[int, Path]]
    numbers: np.ndarray

    @property
    def names(self) -> str:
        """The files' names, for messages."""
        return ", ".join(path.name for _, path in self.files)

    def row(self, value: int) -> str:
        """Return the file and row of a value, for messages."""
        file = [path for start, path in self.files if start <= value][-1]
        return f"{file}: row {self.numbers[value]}"


@dataclass(frozen=True)
class KeyedTable:
    """A value for each text of a teacher's files: logits or scores.

    :ivar keys: content keys, uint64 (texts,), sorted, unique.
    :ivar places: int64 (texts,): their values' rows; :ivar values: float32 (rows, width),
        memory-mapped, in the files' order.
    :ivar weights: float32 (texts,); None: all texts count equally.
    :ivar mask: what the files write for a masked word; :ivar provenance: the values' origin.
    :ivar counts: of the files' rows; :ivar errors: how often each reason for no value was given.
    :ivar origins: not stored.
    """

    keys: np.ndarray
    places: np.ndarray
    values: StoredVectors | np.ndarray
    weights: np.ndarray | None
    mask: str
    provenance: dict[str, str]
    counts: dict[str, int]
    errors: dict[str, int]
    origins: Origins | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def width(self) -> int:
        """Numbers per value."""
        return self.values.shape[1]

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the index of each key's text, int64 (rows,); -1 where there is none."""
        if not len(self):
            return np.full(len(keys), -1)
        indices = np.minimum(np.searchsorted(self.keys, keys), len(self) - 1)
        return np.where(self.keys[indices] == keys, indices, -1)

    def __getitem__(self, indices: np.ndarray | slice) -> np.ndarray:
        """Return texts' values, float32 (texts, width)."""
        return self.values[self.places[indices]]

    def sample(self, count: int) -> slice:
        """Return the indices of at most so many texts, evenly spaced."""
        return slice(None, None, -(-len(self) // count) or 1)

    def write(self, folder: Path) -> None:
        """Write everything but the values, which were written as they were read."""
        columns = {"key": self.keys, "place": self.places}
        if self.weights is not None:
            columns["weight"] = self.weights
        write_shard(folder / PLACES, pa.table(columns))
        fields = ("mask", "provenance", "counts", "errors")
        write_json(folder / RECORD, {field: getattr(self, field) for field in fields})

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the table in a folder."""
        check_sealed(folder)
        index = read_shard(folder / PLACES)
        return cls(
            index["key"].to_numpy(),
            index["place"].to_numpy(),
            MappedValues(folder / ANSWERS),
            index["weight"].to_numpy() if "weight" in index.column_names else None,
            **read_record(folder / RECORD, "mask", "provenance", "counts", "errors"),
        )


def digest_of(folder: Path) -> str:
    """Return the SHA-256 over the values in ``folder`` and their index."""
    return sha256_json([sha256_file(folder / file) for file in (ANSWERS, PLACES)])


@lru_cache(maxsize=1)
def loaded(folder: Path, digest: str) -> KeyedTable:
    """Read the table with this digest; the process caches the last one."""
    return KeyedTable.read(folder)


def content_keys(columns: Sequence[Sequence[str]]) -> np.ndarray:
    """Return the content key of each text or pair, uint64 (rows,), ignoring surrounding whitespace.

    :param columns: the first sentences and, for pairs, the second ones.
    """
    stripped = ([text.strip() for text in column] for column in columns)
    return string_keys([SEPARATOR.join(parts) for parts in zip(*stripped, strict=True)])


def row_keys(rows: pa.Table, mask: str) -> np.ndarray:
    """Return the content key of each row of a shard, uint64 (rows,), with masked words as ``mask``."""
    return content_keys(read_texts(rows, mask))


def read_texts(rows: pa.Table, mask: str) -> list[list[str]]:
    """Return a shard's texts as the teacher reads them, by side."""
    return [signed_sentences(rows, side, lambda: mask) for side in column_suffixes(rows)]
