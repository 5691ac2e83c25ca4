"""The pass that computes a pretrained model's sentence vectors, for distilling without a task."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from pipeline_lib.base.layout import Layout, Pair
from pipeline_lib.models.vector_model import VectorModel, load_vector_model
from pipeline_lib.outputs.teacher_pass import TeacherPass
from pipeline_lib.params import Params
from pipeline_lib.shards.columns import column_suffixes, list_column


@dataclass(frozen=True)
class VectorPass(TeacherPass):
    """The pass that computes sentence vectors, for both sentences if rows are pairs.

    :ivar pooling: see :class:`VectorModel`; :ivar storage: float16; encoders lose nothing by it.
    """

    kind: ClassVar[str] = "vectors"
    column: ClassVar[str] = "vector"
    pooling: str
    storage: str = "float16"

    @classmethod
    def of(cls, params: Params, folder: Path) -> Self:
        """Resolve device and dtypes from params for the encoder in ``folder``."""
        settings = params.sentence_vectors
        return super().of(params, folder, settings.max_length, pooling=settings.pooling)

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

    def columns(self, outputs: np.ndarray, side: str) -> dict[str, pa.Array]:
        """Return the column vector, of fixed-size lists; that of a pair's second sentence is ``vector_2``."""
        return {f"vector{side}": list_column(outputs.astype(self.storage))}


@lru_cache(maxsize=1)
def _loaded(folder: Path, digest: str, device: str, precision: str, pooling: str) -> VectorModel:
    return load_vector_model(folder, device, precision, pooling)


def sentence_sets(params: Params, layout: Layout) -> list[Pair]:
    """Return the sets that encoders are trained on, and their vectors: Wikipedia's, and those of included tasks."""
    sets = [Pair(layout.wikipedia(split), layout.wikipedia_vectors(split)) for split in ("train", "validation")]
    joined = {key: None for row in params.sentence_encoders().values() for key in row.tasks.items() if key[1]}
    return sets + [Pair(layout.transfer(*key), layout.task_vectors(*key)) for key in joined]
