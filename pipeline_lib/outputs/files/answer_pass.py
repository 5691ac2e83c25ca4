"""The pass that looks up each row's answer, read from files, by its content key."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from pipeline_lib.base.files import read_record, sha256_file
from pipeline_lib.base.probabilities import answered
from pipeline_lib.outputs.files.answers import RECORD, TABLE, Answers
from pipeline_lib.outputs.files.content_keys import row_keys
from pipeline_lib.outputs.health import check_finite, check_outputs
from pipeline_lib.shards.columns import list_column, matrix
from pipeline_lib.shards.engine.passes import Output, ShardPass


@dataclass(frozen=True)
class AnswerPass(ShardPass):
    """The pass that looks up the answer to every row of a shard by its content key.

    Rows without one have NaN in all logits.

    :ivar folder: of the answers; :ivar digest: of their table.
    :ivar mask: what a masked word is replaced by; :ivar provenance: the answers' origin.
    """

    kind: ClassVar[str] = "logits"
    folder: Path
    digest: str
    mask: str
    provenance: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return the pass for the answers in ``folder``."""
        metadata = read_record(folder / RECORD, "mask", "provenance")
        provenance = tuple(sorted(metadata["provenance"].items()))
        return cls(folder, sha256_file(folder / TABLE), metadata["mask"], provenance)

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the outputs besides the input and the code."""
        settings = {"answers": self.digest, "mask": self.mask, "provenance": dict(self.provenance)}
        return settings | {"precision": "as given"}

    def load(self) -> None:
        """Load the answers, so that forked workers share them."""
        _loaded(self.folder, self.digest)

    def outputs(self, rows: pa.Table) -> Iterator[Output]:
        """Yield columns key (uint64), logits and, if rows are weighted, weight (float32)."""
        answers = _loaded(self.folder, self.digest)
        places = answers.find(row_keys(rows, self.mask))
        known = places >= 0
        logits = np.full((len(places), answers.logits.shape[1]), np.nan, np.float32)
        logits[known] = answers.logits[places[known]]
        columns = {"key": rows["key"], "logits": list_column(logits)}
        if answers.weights is not None:
            weights = np.ones(len(places), np.float32)
            weights[known] = answers.weights[places[known]]
            columns["weight"] = pa.array(weights)
        yield pa.table(columns), answered_counts(logits)

    def check(self, content: pa.Table, output: pa.Table, name: str) -> None:
        """Check that a shard's answers are finite and, if they can be told apart, differ.

        The files were checked as a whole; checking each shard reveals a stretch that went wrong.
        """
        logits = matrix(output["logits"])
        known, where = ~np.isnan(logits).all(axis=1), f"{self.kind} of {name}"
        remedy = (
            "Nothing of this shard was stored. Remove the answers to its rows from the files, and "
            "have the teacher answer again."
        )
        check_finite(logits[known], where, remedy)
        if not _loaded(self.folder, self.digest).are_few():
            keys = row_keys(content, self.mask)[known]
            check_outputs(logits[known], keys, where, remedy, few=True)


@lru_cache(maxsize=1)
def _loaded(folder: Path, digest: str) -> Answers:
    return Answers.read(folder)


def answered_counts(logits: np.ndarray) -> dict[str, int]:
    """Return how many rows have an answer, and how many have none."""
    known = int(answered(logits).sum())
    return {"answered": known, "unanswered": len(logits) - known}
