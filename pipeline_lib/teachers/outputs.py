"""The passes over a teacher: what is computed for every row of a shard set, and how.

Batches are formed within one shard, so no shard's bytes depend on another.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa

from pipeline_lib.base.devices import resolve_batch_tokens, resolve_device, resolve_precision
from pipeline_lib.base.processor import computed_on
from pipeline_lib.engine.passes import ShardPass
from pipeline_lib.params import Params
from pipeline_lib.storage.columns import list_column
from pipeline_lib.storage.fingerprint import TRAINING_LIBRARIES
from pipeline_lib.teachers.model import Teacher, Transformer, digest_model, load_teacher


@dataclass(frozen=True)
class TeacherPass(ShardPass):
    """A pass over a teacher: all that its outputs depend on besides the input shard.

    :ivar folder: the teacher's model folder.
    :ivar digest: of its weights, tokenizer, configuration.
    """

    folder: Path
    digest: str
    device: str
    precision: str
    max_length: int
    batch_tokens: int

    @classmethod
    def of(cls, params: Params, folder: Path, max_length: int, **own: Any) -> Self:
        """Resolve device and number format of params for the teacher in ``folder``.

        :param max_length: tokens of a text that are kept; :param own: the subclass' own fields.
        """
        device = resolve_device(params.device)
        return cls(
            folder,
            digest_model(folder),
            str(device),
            resolve_precision(params.precompute.precision, device),
            max_length,
            resolve_batch_tokens(params.precompute.batch_tokens, device),
            **own,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the outputs besides the input, the code and the libraries."""
        return {
            "teacher": self.digest,
            "max_length": self.max_length,
            "batch_tokens": self.batch_tokens,
            "precision": self.precision,
            "device": self.device.split(":")[0],
        }

    @property
    def libraries(self) -> tuple[str, ...]:
        """The distributions that decide the outputs' bytes."""
        return TRAINING_LIBRARIES

    @abstractmethod
    def teacher(self) -> Transformer:
        """Load the teacher; a process keeps the last one."""

    @property
    def computed_on(self) -> str:
        """The processor or accelerator: floating point differs in the last digits."""
        return computed_on(self.device)

    def load(self) -> None:
        """Load the teacher, so that forked workers share it."""
        self.teacher()


class LogitPass(TeacherPass):
    """The pass that computes a fine-tuned teacher's logits, or the scores of a regression."""

    kind: ClassVar[str] = "logits"

    def teacher(self) -> Teacher:
        """Load the teacher; a process keeps the last one."""
        return _loaded(self.folder, self.digest, self.device, self.precision)

    def compute(self, rows: pa.Table) -> pa.Table:
        """Return columns key (uint64) and logits (fixed-size list of float32) for ``rows``."""
        teacher = self.teacher()
        logits = teacher.predict(teacher.texts(rows), self.max_length, self.batch_tokens)
        return pa.table({"key": rows["key"], "logits": list_column(logits)})


@lru_cache(maxsize=1)
def _loaded(folder: Path, digest: str, device: str, precision: str) -> Teacher:
    return load_teacher(folder, device, precision)
