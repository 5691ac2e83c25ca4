"""Embedders of a catalogue's sentences and queries: an encoder, a student's encoder, or a model.

Documents and queries are in one space if one encoder embeds both, or if a model embeds the
documents and the queries' encoder was trained on that model's vectors (asymmetric search).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from pipeline_lib.base.devices import resolve_batch_tokens, resolve_precision
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.model_config import position_count, read_config
from pipeline_lib.models.checks import check_outputs
from pipeline_lib.models.students.folders import Predict
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.tokenise import known_words
from pipeline_lib.models.students.unknown_words import KnownWords
from pipeline_lib.models.students.vector_targets import Targets
from pipeline_lib.models.teacher import digest_model
from pipeline_lib.models.vector_model import load_vector_model

MAX_LENGTH = 128


class Embedder(Protocol):
    """Turns sentences into vectors."""

    @property
    def width(self) -> int:
        """Values per vector."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return each sentence's vector, float32 (texts, width), in their order."""


@dataclass(frozen=True)
class LoadedEmbedder:
    """An encoder, or a transformers model, in use.

    :ivar vectors: texts to vectors, float32 (texts, width), unchecked.
    :ivar words: those that it knows.
    """

    folder: Path
    width: int
    vectors: Predict
    words: KnownWords

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return each sentence's vector, float32 (texts, width), in their order."""
        return check_outputs(self.folder, self.vectors(texts))


@dataclass(frozen=True)
class EncoderReference:
    """An encoder by path and content.

    :ivar folder: where it was, as a hint.
    :ivar digest: SHA-256 over its weights, configuration and tokenizer.
    :ivar pooling: of a transformers model (cls, mean, pooler); None: an encoder or a student.
    :ivar max_length: a transformers model's limit on a sentence's word pieces, else None.
    :ivar precision: a transformers model's number format; None: the device's.
    """

    folder: str
    digest: str
    pooling: str | None = None
    max_length: int | None = None
    precision: str | None = None

    @classmethod
    def to(cls, folder: Path, pooling: str | None = None, max_length: int | None = None) -> "EncoderReference":
        """Refer to the encoder, student or model in ``folder``.

        :param max_length: None: as :func:`longest` says.
        """
        if not (Path(folder) / "config.json").exists():
            raise PotstillError(
                f"{folder}: no encoder here. Give the folder of an encoder, of a student, or, with "
                "`--model`, of a transformers model."
            )
        if pooling is not None and max_length is None:
            max_length = longest(read_config(Path(folder)))
        return cls(Path(folder).as_posix(), digest_model(folder), pooling, max_length)

    def found_in(self, folder: Path | None = None) -> "EncoderReference":
        """Return the reference to the same encoder in another folder; None: in the recorded one."""
        path = Path(folder or self.folder)
        if not (path / "config.json").exists():
            raise PotstillError(
                f"{path}: the encoder of these vectors is no longer there. Give the folder where "
                "it is now with `--encoder`."
            )
        reference = EncoderReference.to(path, self.pooling, self.max_length)
        if reference.digest != self.digest:
            raise PotstillError(
                f"{path}: not the encoder of these vectors (its digest is {reference.digest[:12]}, theirs "
                f"{self.digest[:12]}). Name that one's folder, or build the index again with this one."
            )
        return replace(reference, precision=self.precision)

    def in_precision(self, of: "EncoderReference | None", device: str) -> "EncoderReference":
        """Return the reference with the precision of another one, or, if None, with the device's.

        Vectors of one catalogue are computed in one number format, on whatever machines.
        """
        if self.pooling is None:
            return self
        precision = of.precision if of else resolve_precision("auto", torch.device(device))
        return replace(self, precision=precision)

    def load(self, device: str = "cpu") -> LoadedEmbedder:
        """Load it; the process caches the last ones."""
        return _loaded(self, device)


def longest(config: Mapping[str, Any]) -> int:
    """Return a model's word-piece limit: 128, or its number of positions if that is lower.

    :param config: its ``config.json``.
    """
    return min(MAX_LENGTH, position_count(config) or MAX_LENGTH)


@lru_cache(maxsize=2)
def _loaded(reference: EncoderReference, device: str) -> LoadedEmbedder:
    folder = Path(reference.folder)
    if reference.pooling is None:
        encoder = load_encoder(folder, device)
        words = known_words(encoder.tokenizer, encoder.max_words)
        return LoadedEmbedder(folder, encoder.width, encoder.encode, words)
    precision = resolve_precision(reference.precision or "auto", torch.device(device))
    model = load_vector_model(folder, device, precision, reference.pooling)
    limits = reference.max_length, resolve_batch_tokens(None, model.device)
    words = known_words(model.pieces, reference.max_length)
    return LoadedEmbedder(folder, model.width, lambda texts: model.predict(texts, *limits), words)


def targets_in_space(encoder: Path, documents: EncoderReference) -> Targets:
    """Return an encoder's targets, if they are vectors of these documents' model."""
    targets = Targets.read(encoder)
    if targets.pooling is None:
        raise PotstillError(
            f"{encoder}: trained on vectors from files. Build the index with `--encoder "
            f"{encoder}`: it embeds the documents too, or their vectors are given by `--vectors`."
        )
    if documents.digest != targets.model:
        raise PotstillError(
            f"{encoder}: trained on the vectors of another model ({targets.model[:12]}) than the "
            f"documents' ({documents.digest[:12]}, {documents.folder}): queries and documents are "
            "in different spaces. Build the index with that model, or train an encoder on this one."
        )
    if documents.pooling != targets.pooling:
        raise PotstillError(
            f"{encoder}: trained on the model's vectors with pooling {targets.pooling}, but the documents' pooling is "
            f"{documents.pooling}. Build the index with `--pooling {targets.pooling}`."
        )
    if documents.max_length != targets.max_length:
        raise PotstillError(
            f"{encoder}: trained on the model's vectors of up to {targets.max_length} word pieces, "
            f"but it read up to {documents.max_length} of each document: long ones have another "
            f"vector. Build the index with `--max-length {targets.max_length}`."
        )
    return targets
