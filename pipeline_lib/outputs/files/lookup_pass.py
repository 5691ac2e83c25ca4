"""The pass that looks up what files answer to each row of a shard, by its content key."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from pipeline_lib.base.files import sha256_file
from pipeline_lib.outputs.files.keyed_table import ANSWERS, KeyedTable, loaded, row_keys
from pipeline_lib.outputs.health import MAX_ROWS, check_finite, check_outputs
from pipeline_lib.shards.columns import list_column, matrix
from pipeline_lib.shards.engine.passes import Output, ShardPass

_REMEDY = (
    "Nothing of this shard was stored. Remove the answers to its rows from the files, and have "
    "the teacher answer again."
)


@dataclass(frozen=True)
class AnswerPass(ShardPass):
    """The pass that looks up the answer to every row, logits or a score; rows without one have NaN.

    :ivar folder: of the table; :ivar digest: of its keys and values.
    """

    kind: ClassVar[str] = "logits"
    folder: Path
    digest: str

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return the pass for the table in ``folder``."""
        return cls(folder, sha256_file(folder / ANSWERS))

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the outputs besides the input and the code; no model was run."""
        answers = {"provenance": self.table.provenance, "precision": "as given", "answers": self.digest}
        return {"mask": self.mask} | answers

    @property
    def mask(self) -> str:
        """What a masked word is replaced by."""
        return self.table.mask

    @property
    def table(self) -> KeyedTable:
        """The answers, memory-mapped; the process caches the last ones."""
        return loaded(self.folder, self.digest)

    def load(self) -> None:
        """Map the answers, so that forked workers share them."""
        assert self.table

    def outputs(self, rows: pa.Table) -> Iterator[Output]:
        """Yield the columns key, logits, and ``weight`` if texts are weighted."""
        table = self.table
        indices = table.find(row_keys(rows, self.mask))
        is_answered = indices >= 0
        logits = np.full((len(indices), table.width), np.nan, np.float32)
        logits[is_answered] = table[indices[is_answered]]
        columns = {"key": rows["key"], "logits": list_column(logits)}
        if table.weights is not None:
            weights = np.ones(len(indices), np.float32)
            weights[is_answered] = table.weights[indices[is_answered]]
            columns["weight"] = pa.array(weights)
        count = int(is_answered.sum())
        yield pa.table(columns), {"answered": count, "unanswered": len(indices) - count}

    def check(self, content: pa.Table, output: pa.Table, name: str) -> None:
        """Check that a shard's answers are finite and, if they can be told apart, differ."""
        logits, where = matrix(output["logits"]), f"{self.kind} of {name}"
        is_answered = ~np.isnan(logits).all(axis=1)
        if _are_few(self.table):
            check_finite(logits[is_answered], where, _REMEDY)
        else:
            keys = row_keys(content, self.mask)
            check_outputs(logits[is_answered], keys[is_answered], where, _REMEDY, few=True)


def _are_few(table: KeyedTable) -> bool:
    """Whether fewer than half of the answers are distinct, as with bare labels.

    Then a sorted set, or a rare class, gives many consecutive rows the same one.
    """
    chosen = table[table.sample(MAX_ROWS)]
    return 2 * len(np.unique(chosen, axis=0)) < len(chosen)
