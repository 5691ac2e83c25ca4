"""Sentence vectors of the base teacher, as it was pre-trained, for distilling without a task.

Wu et al. 2020, section 3.1, take the last layer's state at [CLS]; the mean over the tokens and the
pooler's output are the alternatives.  They are stored whole, in half the bytes (float16), or in a
quarter: int8 with a scale per vector, its greatest absolute value / 127.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import torch

from pipeline_lib.columns import sides
from pipeline_lib.devices import DTYPES, resolve_batch_tokens, resolve_device, resolve_precision
from pipeline_lib.errors import DistilleryError
from pipeline_lib.params import Params
from pipeline_lib.shards import ShardSet, check_answers, read_shard
from pipeline_lib.teachers.model import Transformer, digest_model, load_pretrained
from pipeline_lib.teachers.outputs import OutputPass, list_column, matrix


@dataclass
class VectorModel(Transformer):
    """An encoder that gives a vector per sentence.

    :ivar pooling: cls (the last layer's first state), mean (over all tokens, special ones too), or
        pooler (what the model's own pooling layer gives).
    """

    pooling: str

    @property
    def width(self) -> int:
        """Values per vector."""
        return int(self.model.config.hidden_size)

    def forward(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the vectors of a batch of sentences, shape (rows, width)."""
        output = self.run(batch)
        if self.pooling == "pooler":
            return output.pooler_output
        if self.pooling == "cls":
            return output.last_hidden_state[:, 0]
        states = output.last_hidden_state.float()
        columns = torch.arange(states.shape[1], device=states.device)
        counted = (columns < batch["lengths"][:, None])[:, :, None]
        return (states * counted).sum(1) / batch["lengths"][:, None]


def load_vector_model(folder: Path, device: str, precision: str, pooling: str) -> VectorModel:
    """Load an encoder from a transformers model folder; safetensors only.

    :raises DistilleryError: if the folder is no such model, or has no pooler where one is wanted.
    """
    from pipeline_lib.teachers.attention import use_short_attention

    model, tokenizer = load_pretrained(folder, "AutoModel", {})
    if pooling == "pooler" and getattr(model, "pooler", None) is None:
        raise DistilleryError(
            f"{folder}: the model has no pooler. Set sentence_vectors.pooling in params.yaml to "
            "cls or mean."
        )
    use_short_attention(model)
    return VectorModel(
        model.to(device, DTYPES[precision]).eval(),
        tokenizer,
        torch.device(device),
        precision,
        digest_model(folder),
        pooling,
    )


@dataclass(frozen=True)
class VectorPass(OutputPass):
    """The pass that computes sentence vectors, for both sentences where rows are pairs.

    :ivar pooling: see :class:`VectorModel`; :ivar storage: float32, float16 or int8.
    """

    kind: ClassVar[str] = "vectors"
    pooling: str
    storage: str

    @classmethod
    def of(cls, params: Params, folder: Path) -> "VectorPass":
        """Resolve device and number formats of params for the encoder in ``folder``."""
        device = resolve_device(params.device)
        return cls(
            folder,
            digest_model(folder),
            str(device),
            resolve_precision(params.precompute.precision, device),
            params.teacher.max_length,
            resolve_batch_tokens(params.precompute.batch_tokens, device),
            params.sentence_vectors.pooling,
            params.sentence_vectors.storage,
        )

    def made_from(self) -> dict[str, object]:
        """Return the settings that determine the vectors, for keys and manifests."""
        return super().made_from() | {"pooling": self.pooling, "storage": self.storage}

    def teacher(self) -> VectorModel:
        """Load the encoder; a process keeps the last one."""
        return _loaded(self.folder, self.digest, self.device, self.precision, self.pooling)

    def compute(self, rows: pa.Table) -> pa.Table:
        """Return columns key, vector (fixed-size list) and, of int8, scale (float32) for ``rows``.

        A pair's second sentence has columns ``vector_2`` and ``scale_2``.
        """
        columns: dict[str, Any] = {"key": rows["key"]}
        for side in sides(rows.column_names):
            sentences = rows[f"text{side}"].to_pylist()
            vectors = self.teacher().predict(sentences, self.max_length, self.batch_tokens)
            stored, scale = pack(vectors, self.storage)
            columns[f"vector{side}"] = list_column(stored)
            if scale is not None:
                columns[f"scale{side}"] = pa.array(scale)
        return pa.table(columns)


@lru_cache(maxsize=1)
def _loaded(folder: Path, digest: str, device: str, precision: str, pooling: str) -> VectorModel:
    return load_vector_model(folder, device, precision, pooling)


def pack(vectors: np.ndarray, storage: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return float32 vectors (rows, width) as they are stored, and the scales of int8 (rows,)."""
    if storage != "int8":
        return vectors.astype(storage), None
    scale = np.abs(vectors).max(1) / 127
    steps = np.rint(vectors / np.where(scale, scale, 1.0)[:, None])
    return steps.astype(np.int8), scale.astype(np.float32)


class StoredVectors:
    """The sentence vectors of several shard sets in a row, read from the mapped files as needed.

    Indexing by an array of row numbers gives float32 (rows, width): a training keeps no more in
    memory than its batch.
    """

    def __init__(self, tables: list[tuple[pa.Table, str]]) -> None:
        """Take tables and the side (``""`` or ``_2``) whose vectors are meant."""
        self._parts = [matrix(table[f"vector{side}"]) for table, side in tables]
        self._scales = [
            table[f"scale{side}"].to_numpy() if f"scale{side}" in table.column_names else None
            for table, side in tables
        ]
        self._ends = np.cumsum([len(part) for part in self._parts])

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and width."""
        return len(self), self._parts[0].shape[1]

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        found = np.empty((len(rows), self._parts[0].shape[1]), np.float32)
        parts = np.searchsorted(self._ends, rows, side="right")
        for number in np.unique(parts):
            own = parts == number
            part, scale = self._parts[number], self._scales[number]
            places = rows[own] - (self._ends[number] - len(part))
            values = part[places].astype(np.float32)
            found[own] = values if scale is None else values * scale[places][:, None]
        return found


def vector_tables(inputs: ShardSet, outputs: ShardSet) -> list[tuple[pa.Table, pa.Table]]:
    """Return (input rows, their vectors) per shard, memory-mapped, once checked to belong together.

    :raises DistilleryError: if the vectors answer to other sentences.
    """
    check_answers(inputs.manifest, outputs.manifest)
    return [
        (read_shard(inputs.path(given)), read_shard(outputs.path(answer)))
        for given, answer in zip(inputs.manifest.shards, outputs.manifest.shards, strict=True)
    ]
