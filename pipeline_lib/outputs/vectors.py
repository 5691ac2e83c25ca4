"""Sentence vectors of a pre-trained model, for distilling without a task.

Wu et al. 2020, section 3.1, use the last layer's state of [CLS]; the mean over the tokens and the
pooler's output are the alternatives.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import torch

from pipeline_lib.base.devices import DTYPES
from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.models.teacher import Transformer, digest_model, load_pretrained
from pipeline_lib.outputs.teacher_pass import TeacherPass
from pipeline_lib.params import Params
from pipeline_lib.shards.columns import column_suffixes, list_column
from pipeline_lib.shards.vectors import pack
from pipeline_lib.text.ragged import inside


@dataclass
class VectorModel(Transformer):
    """An encoder that returns one vector per sentence.

    :ivar pooling: cls (the last layer's first state), mean (over all tokens, special ones too), or
        pooler (the output of the model's own pooling layer).
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
        counted = inside(batch["ids"], batch["lengths"])[:, :, None]
        return (states * counted).sum(1) / batch["lengths"].to(states.device)[:, None]


def load_vector_model(folder: Path, device: str, precision: str, pooling: str) -> VectorModel:
    """Load an encoder from a transformers model folder; safetensors only.

    :raises DistilleryError: if the folder is not such a model, or lacks a pooler that is needed.
    """
    from pipeline_lib.models.cpu.attention import use_short_attention

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
class VectorPass(TeacherPass):
    """The pass that computes sentence vectors, for both sentences if rows are pairs.

    :ivar pooling: see :class:`VectorModel`; :ivar storage: float32, float16 or int8.
    """

    kind: ClassVar[str] = "vectors"
    column: ClassVar[str] = "vector"
    pooling: str
    storage: str

    @classmethod
    def of(cls, params: Params, folder: Path) -> Self:
        """Resolve device and dtypes from params for the encoder in ``folder``."""
        settings = params.sentence_vectors
        return super().of(
            *(params, folder, settings.max_length),
            pooling=settings.pooling,
            storage=settings.storage,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the vectors besides the input, the code and the libraries."""
        return super().settings | {"pooling": self.pooling, "storage": self.storage}

    def teacher(self) -> VectorModel:
        """Load the encoder; the process caches the last one."""
        return _loaded(self.folder, self.digest, self.device, self.precision, self.pooling)

    def sides(self, rows: pa.Table) -> tuple[str, ...]:
        """Return the column suffixes, of both sentences if rows are pairs."""
        return column_suffixes(rows)

    def texts(self, rows: pa.Table, side: str) -> list[str]:
        """Return each row's sentence of one side."""
        return self.teacher().sentences(rows, side)

    def different(self, rows: pa.Table, side: str) -> np.ndarray:
        """Return a number per distinct sentence of one side: a pair's sentences may repeat."""
        return rows[f"text{side}"].combine_chunks().dictionary_encode().indices.to_numpy()

    def compute(self, rows: pa.Table) -> pa.Table:
        """Return columns key, vector (fixed-size list) and, for int8, scale (float32) for ``rows``.

        A pair's second sentence has columns ``vector_2`` and ``scale_2``.
        """
        columns: dict[str, Any] = {"key": rows["key"]}
        for side in self.sides(rows):
            sentences = self.texts(rows, side)
            vectors = self.teacher().predict(sentences, self.max_length, self.batch_tokens)
            stored, scale = pack(vectors, self.storage)
            columns[f"vector{side}"] = list_column(stored)
            if scale is not None:
                columns[f"scale{side}"] = pa.array(scale)
        return pa.table(columns)


@lru_cache(maxsize=1)
def _loaded(folder: Path, digest: str, device: str, precision: str, pooling: str) -> VectorModel:
    return load_vector_model(folder, device, precision, pooling)
