"""The record of an encoder's target vectors: the model that computed them, and the mean subtracted.

If an encoder's vectors are in the same space as the model's, the two can be compared: documents
embedded by the large model, queries by the small one.
"""

import hashlib
import io
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path, read_record, write_json

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
            save_mean(folder / MEAN, self.mean)
            record["mean"] = MEAN
        write_json(folder / RECORD, record)

    @classmethod
    def read(cls, folder: Path) -> "Targets":
        """Read an encoder's record."""
        path = Path(folder) / RECORD
        if not path.exists():
            raise PotstillError(
                f"{folder}: not trained on a model's vectors (there is no {RECORD}). Give an "
                "encoder below data/encoders that `dvc repro` has trained."
            )
        record = read_record(path, "model", "pooling", "max_length", "mean")
        mean = None if record["mean"] is None else load_mean(Path(folder) / MEAN)
        return cls(record["model"], record["pooling"], record["max_length"], mean)


def save_mean(path: Path, mean: np.ndarray) -> None:
    """Write a mean vector as a NumPy file, float32 (width,)."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(_content(mean))


def digest_mean(mean: np.ndarray) -> str:
    """Return the hex SHA-256 of the file that :func:`save_mean` writes."""
    return hashlib.sha256(_content(mean)).hexdigest()


def _content(mean: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.save(sink, mean.astype(np.float32))
    return sink.getvalue()


def load_mean(path: Path) -> np.ndarray:
    """Read what :func:`save_mean` wrote."""
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise PotstillError(f"{path}: the mean vector cannot be read ({error}). Make its folder again.") from error
