"""The mean of several teachers' answers, from their stored outputs.

For classes and labels it is the mean of their probabilities, as in deep ensembles (Lakshminarayanan et al. 2017,
section 2.4): logits have no common scale, so the most confident teacher would outvote the others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.base.text import MASK
from pipeline_lib.outputs.health import check_finite, check_outputs
from pipeline_lib.params import Average
from pipeline_lib.shards.columns import list_column, matrix
from pipeline_lib.shards.engine.passes import Output, ShardPass
from pipeline_lib.shards.shard_sets import Shard, ShardSet, check_answers, read_manifest, read_shard


@dataclass(frozen=True)
class AveragePass(ShardPass):
    """The pass that averages the outputs of several teachers; a row that one of them did not answer has no answer.

    :ivar folders: of the teachers' outputs for the set; :ivar digests: of these sets.
    :ivar weights: of the teachers, summing to 1; :ivar of_kind: the kind of task.
    """

    kind: ClassVar[str] = "logits"
    mask: ClassVar[str] = MASK
    folders: tuple[Path, ...]
    digests: tuple[str, ...]
    weights: tuple[float, ...]
    of_kind: str

    @classmethod
    def of(cls, folders: Mapping[str, Path], settings: Average, kind: str) -> Self:
        """Average the outputs in ``folders``, by teacher."""
        weights = settings.weights or [1.0] * len(settings.of)
        paths = tuple(folders[name] for name in settings.of)
        digests = tuple(read_manifest(folder).digest for folder in paths)
        shares = tuple(weight / sum(weights) for weight in weights)
        return cls(paths, digests, shares, kind)

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the outputs besides the input and the code."""
        averaged = {"average_of": list(self.digests), "weights": list(self.weights)}
        return averaged | {"of": self.of_kind, "precision": "float64"}

    def content(self, inputs: ShardSet, shard: Shard) -> tuple[Path, ...]:
        """Return the shards of all teachers' outputs for an input shard."""
        answers = zip(self.folders, self.digests, strict=True)
        return tuple(_answering(*pair, inputs.folder)[shard.sha256] for pair in answers)

    def outputs(self, content: tuple[Path, ...]) -> Iterator[Output]:
        """Yield columns key (uint64) and logits (fixed-size list of float32)."""
        tables = [read_shard(path) for path in content]
        logits = mean_answer([matrix(table["logits"]) for table in tables], self.weights, self.of_kind)
        columns = {"key": tables[0]["key"], "logits": list_column(logits)}
        count = int(answered(logits).sum())
        yield pa.table(columns), {"answered": count, "unanswered": len(logits) - count}

    def check(self, content: tuple[Path, ...], output: pa.Table, name: str) -> None:
        """Check that a shard's means are finite, and differ where a teacher's own answers do."""
        logits = [matrix(read_shard(path)["logits"]) for path in content]
        is_answered, where = _all_answered(logits), f"{self.kind} of {name}"
        means, keys = matrix(output["logits"])[is_answered], output["key"].to_numpy()[is_answered]
        remedy = (
            "Nothing of this shard was stored. Check that the teachers' classes are in the same "
            "order and their scores in the same unit, or leave one out of the average's `of`."
        )
        check_finite(means, where, remedy)
        if any((values[is_answered] != values[is_answered][:1]).any() for values in logits):
            check_outputs(means, keys, where, remedy, few=True)


@lru_cache(maxsize=8)
def _answering(folder: Path, digest: str, inputs: Path) -> dict[str, Path]:
    """Return the shards of an output set, by the digests of their input shards."""
    outputs = ShardSet.open(folder)
    if faults := outputs.verify():
        raise PotstillError(f"{faults[0]}. Delete {folder} and run `dvc repro`.")
    check_answers(read_manifest(inputs), outputs.manifest)
    return {shard.source: outputs.path(shard) for shard in outputs.manifest.shards}


def mean_answer(logits: list[np.ndarray], weights: tuple[float, ...], kind: str) -> np.ndarray:
    """Return the weighted mean of answers, float32 (rows, outputs): see ``mean`` of the task's kind."""
    is_answered = _all_answered(logits)
    answers = np.full(logits[0].shape, np.nan, np.float32)
    answers[is_answered] = KINDS[kind].mean([values[is_answered] for values in logits], weights)
    return answers


def _all_answered(logits: list[np.ndarray]) -> np.ndarray:
    return np.all([answered(values) for values in logits], axis=0)
