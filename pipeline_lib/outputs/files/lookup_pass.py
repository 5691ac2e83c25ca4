"""The passes that look up what files give to each row of a shard, by its content key."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from pipeline_lib.outputs.files.keyed_table import (
    KeyedTable,
    Name,
    content_keys,
    digest_of,
    loaded,
    read_texts,
    row_keys,
)
from pipeline_lib.outputs.health import MAX_ROWS, check_finite, check_outputs
from pipeline_lib.shards.columns import FIRST, column_suffixes, list_column
from pipeline_lib.shards.engine.passes import Output, ShardPass
from pipeline_lib.shards.vectors import StoredVectors


@dataclass(frozen=True)
class LookupPass(ShardPass):
    """A pass that looks up the value of every text of a shard; those without have NaN in all numbers.

    :cvar name: of the table; :cvar column: of the outputs; :cvar few: whether there may be few distinct ones.
    :cvar storage: their number format; :ivar folder: of the table; :ivar digest: of its content.
    """

    name: ClassVar[Name]
    column: ClassVar[str]
    few: ClassVar[bool]
    storage: ClassVar[str]
    remedy: ClassVar[str]
    folder: Path
    digest: str

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return the pass for the table in ``folder``."""
        return cls(folder, digest_of(folder, cls.name))

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the outputs besides the input and the code; no model was run."""
        return {"mask": self.mask, "provenance": self.table.provenance, "precision": "as given"}

    @property
    def mask(self) -> str:
        """What a masked word is replaced by."""
        return self.table.mask

    @property
    def table(self) -> KeyedTable:
        """The values, memory-mapped; the process caches the last ones."""
        return loaded(self.folder, self.name, self.digest)

    def load(self) -> None:
        """Map the values, so that forked workers share them."""
        assert self.table

    @abstractmethod
    def keys(self, rows: pa.Table) -> dict[str, np.ndarray]:
        """Return the content keys of a shard's texts, uint64 (rows,), by the columns' suffix."""

    def outputs(self, rows: pa.Table) -> Iterator[Output]:
        """Yield the columns key, that of the values, ``scale`` for int8, and ``weight`` if texts are weighted."""
        table, columns = self.table, {"key": rows["key"]}
        counts = {"answered": 0, "unanswered": 0}
        for side, keys in self.keys(rows).items():
            indices = table.find(keys)
            has_value = indices >= 0
            counts["answered"] += int(has_value.sum())
            counts["unanswered"] += int((~has_value).sum())
            values = np.full((len(keys), table.width), np.nan, self.storage)
            with np.errstate(over="ignore"):
                values[has_value] = table[indices[has_value]]
            columns[f"{self.column}{side}"] = list_column(values)
            if table.weights is not None:
                weights = np.ones(len(keys), np.float32)
                weights[has_value] = table.weights[indices[has_value]]
                columns[f"weight{side}"] = pa.array(weights)
        yield pa.table(columns), counts

    def check(self, content: pa.Table, output: pa.Table, name: str) -> None:
        """Check that a shard's values are finite and, if they can be told apart, differ."""
        where = f"{self.kind} of {name}"
        for side, keys in self.keys(content).items() if output.num_rows else ():
            values = StoredVectors([(output, side)], self.column)[np.arange(output.num_rows)]
            has_value = ~np.isnan(values).all(axis=1)
            if self.few and _are_few(self.table):
                check_finite(values[has_value], where, self.remedy)
            else:
                check_outputs(values[has_value], keys[has_value], where, self.remedy, self.few)


@dataclass(frozen=True)
class AnswerPass(LookupPass):
    """The pass that looks up the answer to every row: logits, or the scores of a regression."""

    kind = "logits"
    name = "answers"
    column = "logits"
    storage = "float32"
    few = True
    remedy = (
        "Nothing of this shard was stored. Remove the answers to its rows from the files, and have "
        "the teacher answer again."
    )

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the outputs besides the input and the code."""
        return super().settings | {"answers": self.digest}

    def keys(self, rows: pa.Table) -> dict[str, np.ndarray]:
        """Return the keys of texts or pairs."""
        return {FIRST: row_keys(rows, self.mask)}


@dataclass(frozen=True)
class VectorLookup(LookupPass):
    """The pass that looks up the vector of every sentence."""

    kind = "vectors"
    name = "vectors"
    column = "vector"
    storage = "float16"
    few = False
    remedy = "Nothing of this shard was stored. Vectors are kept in float16: have the texts embedded again."

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the outputs besides the input and the code; no model was run."""
        settings = {"teacher": self.digest, "pooling": None, "max_length": None}
        return super().settings | settings | {"storage": self.storage}

    def keys(self, rows: pa.Table) -> dict[str, np.ndarray]:
        """Return the keys of sentences, separately for those of a pair."""
        sides = zip(column_suffixes(rows), read_texts(rows, self.mask), strict=True)
        return {side: content_keys([texts]) for side, texts in sides}


def _are_few(table: KeyedTable) -> bool:
    """Whether fewer than half of the values are distinct, as with bare labels.

    Then a sorted set, or a rare class, gives many consecutive rows the same one.
    """
    chosen = table[table.sample(MAX_ROWS)]
    return 2 * len(np.unique(chosen, axis=0)) < len(chosen)
