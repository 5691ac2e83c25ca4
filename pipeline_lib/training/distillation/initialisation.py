"""Initialisation: what an untrained student is built from, and its tokenizer."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_record
from pipeline_lib.base.seals import check_sealed
from pipeline_lib.models.networks.architectures import build_encoder
from pipeline_lib.models.networks.student import StudentConfig, StudentNetwork
from pipeline_lib.models.networks.transformer import bert_configuration, cut
from pipeline_lib.models.students.sentence_encoder import encoder_weights, encoder_words
from pipeline_lib.models.students.student import build_student
from pipeline_lib.models.students.vocabulary import load_vocabulary, piece_vectors
from pipeline_lib.models.teacher import load_pretrained
from pipeline_lib.params import BERT, StudentSettings
from pipeline_lib.text.pieces import Pieces, load_pieces


@dataclass(frozen=True)
class Start:
    """What a student is built from besides its settings and its task.

    :ivar words: rows of its embedding table; :ivar width: columns of that table.
    :ivar vectors: the table's initial values, float32 (words, width); None: random.
    :ivar weights: of its whole encoder; None: random.
    :ivar pretrained: its configuration, if it is a transformers model.
    """

    tokenizer: Tokenizer | Pieces
    words: int
    width: int
    vectors: np.ndarray | None = None
    weights: Mapping[str, torch.Tensor] | None = None
    pretrained: Mapping[str, Any] | None = None

    def build(
        self, settings: StudentSettings, pair: bool, labels: list[str], kind: str | None = None
    ) -> StudentNetwork:
        """Return the untrained student; random weights are drawn from torch's generator."""
        options = settings, pair, labels, self.pretrained, kind
        model = build_student(StudentConfig(self.words, self.width, *options), self.vectors)
        self._load(model.encoder)
        return model

    def encoder(self, settings: StudentSettings) -> nn.Module:
        """Return only the untrained encoder of a student."""
        encoder = build_encoder(settings, self.words, self.width, self.pretrained)
        if self.vectors is not None:
            encoder.embeddings.load(torch.from_numpy(self.vectors))
        self._load(encoder)
        return encoder

    def _load(self, encoder: nn.Module) -> None:
        if self.weights is not None:
            # A projection to another width is not part of the model and keeps its own weights.
            encoder.load_state_dict({**encoder.state_dict(), **self.weights})


def start_of(folder: Path, student: StudentSettings, start: str) -> Start:
    """Start as params.yaml says: from ``vectors``, at ``random``, or from the layers of the ``model`` in the folder."""
    if student.source_model is None:
        tokenizer, vectors = load_vocabulary(folder)
        return Start(tokenizer, *vectors.shape, vectors if start == "vectors" else None)
    if student.pretrained:
        return start_from_layers(folder, student)
    if isinstance(student, BERT):
        return start_from_sizes(folder, student)
    return start_from_pieces(folder, student, start == "vectors")


def start_from_encoder(folder: Path, settings: StudentSettings) -> Start:
    """Start from an encoder: a sentence encoder and its words, or a model and its word pieces."""
    check_sealed(folder)
    if isinstance(settings, BERT):
        return start_from_layers(folder, settings)
    if settings.pretrained:
        config = read_record(folder / "config.json", "vocab_size", "embedding_size", "pretrained")
        sizes = config["vocab_size"], config["embedding_size"]
        vocabulary = Pieces.read(folder), *sizes
        return Start(*vocabulary, weights=encoder_weights(folder), pretrained=config["pretrained"])
    tokenizer, vectors = encoder_words(folder)
    return Start(tokenizer, *vectors.shape, weights=encoder_weights(folder))


def start_from_pieces(folder: Path, settings: StudentSettings, with_vectors: bool) -> Start:
    """Start from a pretrained model's word pieces, with their vectors or random ones."""
    pieces, width = load_pieces(folder, settings.reads), settings.embedding_size
    vectors = piece_vectors(folder, pieces.size, width) if with_vectors else None
    return Start(pieces, pieces.size, width, vectors)


def start_from_sizes(folder: Path, settings: BERT) -> Start:
    """Start at random, with a pretrained model's word pieces (Jiao et al. 2020, section 4.2)."""
    pieces = load_pieces(folder, settings.reads)
    config = bert_configuration(settings, pieces.size, pieces.pad_id, 2 if pieces.segments else 1)
    return Start(pieces, pieces.size, settings.width, pretrained=config)


def start_from_layers(folder: Path, settings: StudentSettings) -> Start:
    """Start from some layers of a pretrained model (Liu 2020, section 4.1.3), or from all."""
    model, tokenizer = load_pretrained(folder, "AutoModel", {})
    pieces = Pieces.of(tokenizer, model.config)
    try:
        config = cut(model, settings.layers, settings.dropout)
    except (ValueError, IndexError) as error:
        raise PotstillError(
            f"{folder}: a {settings.name()} student cannot be cut out of it ({error}). Name "
            "another of `models` in its `model`, or other `layers`."
        ) from error
    if settings.reads == "sentences" and not pieces.begins_specially:
        raise PotstillError(
            f"{folder}: a {settings.name()} student leaves out the first token, [CLS], but this "
            "model's tokenizer adds none. Name another of `models` in its `model`."
        )
    weights = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    sizes = model.get_input_embeddings().weight.shape
    return Start(pieces, *sizes, weights=weights, pretrained=config)
