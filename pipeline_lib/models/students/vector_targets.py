"""The record of an encoder's target vectors: the model that computed them, and the mean subtracted."""

import io
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from pipeline_lib.base.files import atomic_path, write_json

RECORD, MEAN = "targets.json", "mean.npy"


@dataclass(frozen=True)
class Targets:
    """A model's sentence vectors, as the target of an encoder.

    :ivar model: SHA-256 over its weights, configuration and tokenizer, or over the vectors if they
        came from files; :ivar pooling: cls, mean or pooler; :ivar max_length: the limit on a
        sentence's word pieces; both are None for vectors from files.
    :ivar mean: what was subtracted from the vectors, float32 (width,); None: nothing.
    """

    model: str
    pooling: str | None
    max_length: int | None
    mean: np.ndarray | None

    def save(self, folder: Path) -> None:
        """Write the record, and the mean if there is one, into an encoder's folder."""
        record = asdict(self) | {"mean": None}
        if self.mean is not None:
            sink = io.BytesIO()
            np.save(sink, self.mean.astype(np.float32))
            with atomic_path(folder / MEAN) as temporary:
                temporary.write_bytes(sink.getvalue())
            record["mean"] = MEAN
        write_json(folder / RECORD, record)
