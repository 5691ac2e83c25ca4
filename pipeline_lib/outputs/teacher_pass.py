"""Passes over a teacher; batches are formed within one shard, so no shard's bytes depend on another."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import torch

from pipeline_lib.base.devices import resolve_batch_tokens, resolve_device, resolve_precision
from pipeline_lib.base.kinds import kind_of_labels, label_array
from pipeline_lib.base.processor import computed_on
from pipeline_lib.base.text import Text
from pipeline_lib.models.networks.layers import model_inputs
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.models.teacher import Teacher, Transformer, digest_model
from pipeline_lib.outputs.health import check_agreement, check_outputs
from pipeline_lib.params import Params, States
from pipeline_lib.shards.columns import FIRST, list_column, matrix
from pipeline_lib.shards.engine.passes import Output, ShardPass
from pipeline_lib.shards.fingerprint import TRAINING_LIBRARIES
from pipeline_lib.shards.vectors import StoredVectors


@dataclass(frozen=True)
class TeacherPass(ShardPass):
    """A pass over a teacher, with outputs for every row, and all that they depend on besides the input shard.

    :cvar column: of its outputs; :ivar digest: of the model's weights, tokenizer, configuration.
    """

    libraries: ClassVar[tuple[str, ...]] = TRAINING_LIBRARIES
    column: ClassVar[str]
    folder: Path
    digest: str
    device: str
    precision: str
    max_length: int
    batch_tokens: int

    @classmethod
    def of(cls, params: Params, folder: Path, max_length: int, **fields: Any) -> Self:
        """Resolve device and dtype from params for the model in ``folder``, which reads so many tokens of a text."""
        device, precompute = resolve_device(params.device), params.precompute
        precision = resolve_precision(precompute.precision, device)
        tokens = resolve_batch_tokens(precompute.batch_tokens, device)
        return cls(folder, digest_model(folder), str(device), precision, max_length, tokens, **fields)

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

    @abstractmethod
    def teacher(self) -> Transformer:
        """Load the model; the process caches the last one."""

    @property
    def computed_on(self) -> str:
        """The processor or accelerator: floating point differs in the last digits."""
        return computed_on(self.device)

    def load(self) -> None:
        """Load the model, so that forked workers, or threads, share it."""
        self.teacher()

    @property
    def in_flight(self) -> int:
        """How many shards a process has in hand: one is tokenised, one computed on an accelerator, and one written."""
        return 1 if self.device == "cpu" else 3

    def sides(self, rows: pa.Table) -> tuple[str, ...]:
        """Return the suffixes of the output columns for ``rows``."""
        return (FIRST,)

    def texts(self, rows: pa.Table, side: str) -> Sequence[Text]:
        """Return the text of each row that the teacher reads for the outputs of one side."""
        return self.teacher().texts(rows)

    def outputs(self, rows: pa.Table) -> Iterator[Output]:
        """Yield the table of a shard's outputs, and how many tokens were read for it."""
        teacher, columns, tokens = self.teacher(), {"key": rows["key"]}, 0
        for side in self.sides(rows):
            sentences = teacher.encode(self.texts(rows, side), self.max_length)
            tokens += len(sentences.ids)
            columns |= self.columns(teacher.answer(sentences, self.batch_tokens), side)
        yield pa.table(columns), {"tokens": tokens}

    def compute(self, rows: pa.Table) -> pa.Table:
        """Return the table of a shard's outputs: its keys (uint64), and :meth:`columns`."""
        [(table, _)] = self.outputs(rows)
        return table

    @abstractmethod
    def columns(self, outputs: np.ndarray, side: str) -> dict[str, pa.Array]:
        """Return the columns of one side's outputs, which are float32 (rows, outputs)."""

    def check(self, content: pa.Table, output: pa.Table, name: str) -> None:
        """Check that a shard's outputs are finite, and differ as those of different inputs do."""
        rows = np.arange(output.num_rows)
        for side in self.sides(content) if len(rows) else ():
            values = StoredVectors([(output, side)], self.column)[rows]
            where, flat = f"{self.kind} of {name}", values.reshape(len(rows), -1)
            check_outputs(flat, self.different(content, side), where, self.remedy)

    def different(self, rows: pa.Table, side: str) -> np.ndarray:
        """Return numbers that differ where the inputs to one side's outputs differ, (rows,)."""
        return rows["key"].to_numpy()

    @property
    def remedy(self) -> str:
        """What to do if the outputs cannot be right."""
        return (
            f"Nothing of this shard was stored. Check the model in {self.folder}, set `precompute.precision` in "
            "params.yaml to float32, or tune the teacher at a lower learning rate, and run `distill run`."
        )


@dataclass(frozen=True)
class LogitPass(TeacherPass):
    """The pass that computes a fine-tuned teacher's logits, or the scores of a regression.

    :ivar agreement: with its training labels, which a shard's must come close to; None for other rows.
    """

    kind: ClassVar[str] = "logits"
    column: ClassVar[str] = "logits"
    agreement: float | None = None

    def teacher(self) -> Teacher:
        """Load the teacher; the process caches the last one."""
        return _loaded(self.folder, self.digest, self.device, self.precision)

    def columns(self, outputs: np.ndarray, side: str) -> dict[str, pa.Array]:
        """Return a column of logits: fixed-size lists of float32."""
        return {"logits": list_column(outputs)}

    def check(self, content: pa.Table, output: pa.Table, name: str) -> None:
        """Check a shard's logits like any outputs, and against the labels of its rows."""
        super().check(content, output, name)
        if self.agreement is not None:
            rows = np.flatnonzero(content["label"].is_valid())
            labels, logits = content["label"].take(rows), matrix(output["logits"])[rows]
            where, kind = f"{self.kind} of {name}", kind_of_labels(labels)
            check_agreement(label_array(labels), logits, rows, self.agreement, kind, where, self.remedy)


@dataclass
class StateTeacher(Teacher):
    """A fine-tuned teacher whose outputs are some layers' states of the first token, [CLS].

    :ivar layers: their indices from 1 on, as in transformers' ``hidden_states``.
    """

    layers: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of values in all states of a row."""
        return len(self.layers) * int(self.model.config.hidden_size)

    def forward(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the states of a batch, the layers concatenated, shape (rows, width)."""
        states = self.model(**model_inputs(batch), output_hidden_states=True).hidden_states
        return torch.cat([states[layer][:, 0] for layer in self.layers], dim=1)


@dataclass(frozen=True)
class StatePass(TeacherPass):
    """The pass that computes a fine-tuned teacher's states of [CLS] (Sun et al. 2019, section 3.2).

    :ivar layers: see :class:`StateTeacher`; :ivar storage: float32 or float16.
    """

    kind: ClassVar[str] = "states"
    column: ClassVar[str] = "states"
    layers: tuple[int, ...]
    storage: str

    @classmethod
    def of(cls, params: Params, folder: Path, max_length: int, states: States) -> Self:
        """Resolve device and dtype from params for the teacher in ``folder``."""
        fields = {"layers": tuple(states.layers), "storage": states.storage}
        return super().of(params, folder, max_length, **fields)

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the states besides the input, the code and the libraries."""
        return super().settings | {"layers": list(self.layers), "storage": self.storage}

    def teacher(self) -> StateTeacher:
        """Load the teacher; the process caches the last one."""
        base = _loaded(self.folder, self.digest, self.device, self.precision)
        return StateTeacher(base.model, base.tokenizer, base.device, base.precision, base.digest, self.layers)

    def columns(self, outputs: np.ndarray, side: str) -> dict[str, pa.Array]:
        """Return a column of states: a list per layer in each row."""
        states = outputs.astype(self.storage)
        return {"states": list_column(states.reshape(len(states), len(self.layers), -1))}


@lru_cache(maxsize=1)
def _loaded(folder: Path, digest: str, device: str, precision: str) -> Teacher:
    return load_teacher(folder, device, precision)
