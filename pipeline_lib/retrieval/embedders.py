"""What embeds sentences and queries: an encoder, a student's encoder, or a model; and the pass that does so."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
import torch

from pipeline_lib.base.devices import resolve_batch_tokens, resolve_device, resolve_precision
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.model_config import position_count, read_config
from pipeline_lib.base.processor import computed_on
from pipeline_lib.models.folders import MODEL_TYPE, check_outputs
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.tokenise import KnownWords, known_words
from pipeline_lib.models.teacher import digest_model
from pipeline_lib.models.vector_model import load_vector_model
from pipeline_lib.params import Params
from pipeline_lib.shards.columns import list_column
from pipeline_lib.shards.engine.passes import Output, ShardPass
from pipeline_lib.shards.fingerprint import TRAINING_LIBRARIES

MAX_LENGTH = 128
"""Word pieces."""
Encode = Callable[[Sequence[str]], np.ndarray]
"""Maps sentences to their vectors, float32 (sentences, width)."""


class LoadedEmbedder(NamedTuple):
    """An encoder, or a transformers model, in use, and the words that it knows."""

    encode: Encode
    words: KnownWords


@dataclass(frozen=True)
class EncoderReference:
    """An encoder by path, which is a hint, and content.

    :ivar digest: SHA-256 over its weights, configuration and tokenizer.
    :ivar pooling: of a transformers model (cls, mean); None: an encoder or a student.
    :ivar max_length: such a model's limit in word pieces; :ivar precision: its number format, None: the device's.
    """

    folder: str
    digest: str
    pooling: str | None = None
    max_length: int | None = None
    precision: str | None = None

    @classmethod
    def to(cls, folder: Path, pooling: str | None = None, max_length: int | None = None) -> Self:
        """Refer to the encoder, student or model in ``folder``."""
        if not (Path(folder) / "config.json").exists():
            raise PotstillError(
                f"{folder}: no encoder here. Give the folder of an encoder, of a student, or, with "
                "`--model`, of a transformers model."
            )
        if pooling is not None and max_length is None:
            max_length = min(MAX_LENGTH, position_count(read_config(Path(folder))) or MAX_LENGTH)
        return cls(Path(folder).as_posix(), digest_model(folder), pooling, max_length)

    def located(self, folder: Path | None = None) -> Self:
        """Return the reference to the same encoder in another folder; None: in the recorded one."""
        path = Path(folder or self.folder)
        if not (path / "config.json").exists():
            raise PotstillError(
                f"{path}: the encoder of these vectors is no longer there. Give the folder where "
                "it is now with `--encoder`."
            )
        digest = digest_model(path)
        if digest != self.digest:
            raise PotstillError(
                f"{path}: not the encoder of these vectors (its digest is {digest[:12]}, theirs "
                f"{self.digest[:12]}). Name that one's folder, or build the index again with this one."
            )
        return replace(self, folder=path.as_posix())

    @lru_cache(maxsize=2)  # noqa: B019  it holds values, and few of them
    def load(self, device: str = "cpu") -> LoadedEmbedder:
        """Load it; the process caches the last ones."""
        folder = Path(self.folder)
        if self.pooling is None:
            encoder = load_encoder(folder, device)
            vectors, words = encoder.encode, known_words(encoder.tokenizer, encoder.max_words)
            return LoadedEmbedder(lambda texts: check_outputs(folder, vectors(texts)), words)
        precision = resolve_precision(self.precision or "auto", torch.device(device))
        model = load_vector_model(folder, device, precision, self.pooling)
        limits = self.max_length, resolve_batch_tokens(None, model.device)
        words = known_words(model.pieces, self.max_length)
        return LoadedEmbedder(lambda texts: check_outputs(folder, model.predict(texts, *limits)), words)


@dataclass(frozen=True)
class IndexPass(ShardPass):
    """The pass that embeds blocks of sentences, columns ``text`` and perhaps ``id``, as vectors of ``storage``."""

    kind: ClassVar[str] = "index"
    row_for_row: ClassVar[bool] = False
    libraries: ClassVar[tuple[str, ...]] = TRAINING_LIBRARIES
    encoder: EncoderReference
    device: str
    storage: str

    @classmethod
    def of(cls, encoder: EncoderReference, device: str = "cpu") -> Self:
        """Resolve the number formats: float16 loses no neighbour, but a pair student's own comparison would notice."""
        if encoder.pooling is not None:
            encoder = replace(encoder, precision=resolve_precision("auto", torch.device(device)))
        config = read_config(Path(encoder.folder))
        is_of_pairs = config.get("model_type") == MODEL_TYPE and config.get("pair", False)
        return cls(encoder, device, "float32" if is_of_pairs else "float16")

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the vectors besides the sentences, the code and the libraries."""
        return {"encoder": asdict(self.encoder) | {"folder": None}, "storage": self.storage}

    @property
    def computed_on(self) -> str:
        """The processor or accelerator: floating point differs in the last digits."""
        return computed_on(self.device)

    def load(self) -> None:
        """Load the encoder, so that forked workers share it."""
        self.encoder.load(self.device)

    def outputs(self, rows: pa.Table) -> Iterator[Output]:
        """Yield the rows with the column ``vector``, and of how many rows the encoder knows no word."""
        embedder, texts = self.encoder.load(self.device), rows["text"].to_pylist()
        vectors = list_column(embedder.encode(texts).astype(self.storage))
        unknown = int(embedder.words.none_in(texts).sum())
        yield rows.append_column("vector", vectors), {"unknown": unknown}


def computing(params: Params) -> tuple[str, str, int]:
    """Return the device, number format and tokens of a batch of models and teachers, resolved on this machine."""
    device, precompute = resolve_device(params.device), params.precompute
    precision = resolve_precision(precompute.precision, device)
    return str(device), precision, resolve_batch_tokens(precompute.batch_tokens, device)


def model_encoder(params: Params, layout: Layout, model: str, pooling: str, max_length: int) -> Encode:
    """Return the embedding function of a row of ``models``; what exceeds ``max_length`` word pieces is truncated."""
    device, precision, batch_tokens = computing(params)
    loaded = load_vector_model(layout.model(model), device, precision, pooling)
    return lambda texts: loaded.predict(texts, max_length, batch_tokens)
