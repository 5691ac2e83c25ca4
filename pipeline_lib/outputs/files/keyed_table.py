"""What teachers' files give to texts, looked up by the texts' content."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from pipeline_lib.base.files import read_record, write_json
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.seals import check_sealed
from pipeline_lib.shards.columns import column_suffixes, list_column, matrix
from pipeline_lib.shards.masking import signed_sentences
from pipeline_lib.shards.shard_sets import read_shard, write_shard

ANSWERS, RECORD = "answers.arrow", "answers.json"
"""Two files in a table's folder: keys and values, and what is known about them."""
SEPARATOR = "\x1f"
"""Joins the two sentences of a pair before they are hashed."""


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

    :ivar keys: content keys, uint64 (texts,), sorted, unique; :ivar values: float32 (texts, width).
    :ivar weights: float32 (texts,); None: all texts count equally.
    :ivar mask: what the files write for a masked word; :ivar provenance: the values' origin.
    :ivar counts: of the files' rows; :ivar errors: how often each reason for no value was given.
    :ivar places: the values' numbers in the files' order, int64 (texts,), not stored; :ivar origins: nor are these.
    """

    keys: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None
    mask: str
    provenance: dict[str, str]
    counts: dict[str, int]
    errors: dict[str, int]
    places: np.ndarray | None = None
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
        return self.values[indices]

    def sample(self, count: int) -> slice:
        """Return the indices of at most so many texts, evenly spaced."""
        return slice(None, None, -(-len(self) // count) or 1)

    def write(self, folder: Path) -> None:
        """Write the table, but for where its values were read."""
        columns = {"key": self.keys, "logits": list_column(self.values)}
        if self.weights is not None:
            columns["weight"] = self.weights
        write_shard(folder / ANSWERS, pa.table(columns))
        fields = ("mask", "provenance", "counts", "errors")
        write_json(folder / RECORD, {field: getattr(self, field) for field in fields})

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the table in a folder, memory-mapped."""
        check_sealed(folder)
        table = read_shard(folder / ANSWERS)
        weights = table["weight"].to_numpy() if "weight" in table.column_names else None
        record = read_record(folder / RECORD, "mask", "provenance", "counts", "errors")
        return cls(table["key"].to_numpy(), matrix(table["logits"]), weights, **record)


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
