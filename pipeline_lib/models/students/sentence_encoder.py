"""Standalone sentence encoders: saving, loading and encoding sentences, and the record of their target vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import nn

from pipeline_lib.base.files import atomic_path, read_record, write_json
from pipeline_lib.models.folders import ENCODER_TYPE, MODEL_TYPE
from pipeline_lib.models.networks.architectures import build_encoder
from pipeline_lib.models.networks.student import ENCODED, StudentNetwork
from pipeline_lib.models.students.student import attend_quickly, load_student, opening, quick_batch, quick_threads
from pipeline_lib.models.students.tokenise import numbering, read_tokenizer, write_tokenizer
from pipeline_lib.models.weights import check_finite
from pipeline_lib.params import StudentSettings, student_settings
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.fast_tokenizer import WordNumbers
from pipeline_lib.text.pieces import Pieces, load_tokenizer
from pipeline_lib.text.ragged import Sentences, to_device

RECORD, MEAN = "targets.json", "mean.npy"


@dataclass(frozen=True)
class Targets:
    """A model's sentence vectors, as the target of an encoder.

    :ivar model: SHA-256 over its weights, configuration and tokenizer, or over the vectors if they
        came from files; :ivar pooling: cls or mean; :ivar max_length: the limit on a
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
            with atomic_path(folder / MEAN) as temporary, temporary.open("wb") as file:
                np.save(file, self.mean.astype(np.float32))
            record["mean"] = MEAN
        write_json(folder / RECORD, record)


PREFIX = "encoder."
"""Of the stored tensors' names, as a student's encoder has them."""


@dataclass
class SentenceEncoder:
    """An encoder and its word or word-piece tokenizer, on one device."""

    model: nn.Module
    tokenizer: Tokenizer | Pieces
    max_words: int
    device: torch.device

    @property
    def width(self) -> int:
        """Values per vector."""
        return self.model.width

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return each sentence's vector, float32 (texts, width), in their order."""
        sentences = self._words.number(texts, self.max_words)
        return encode_sentences(self.model, sentences, self.device)

    @cached_property
    def _words(self) -> WordNumbers | Pieces:
        return numbering(self.tokenizer)


def encode_sentences(model: nn.Module, sentences: Sentences, device: torch.device) -> np.ndarray:
    """Return vectors, float32, shape (sentences, width), computed in batches by length."""
    vectors = np.empty((len(sentences), model.width), np.float32)
    model.eval()
    with torch.inference_mode(), quick_threads(model, device):
        for rows in LengthSorted(sentences, quick_batch(model, device), seed=0).epoch(0):
            batch = to_device(sentences.batch(rows), device)
            vectors[rows] = model(batch["ids"], batch["lengths"]).float().cpu().numpy()
    return vectors


def save_encoder(
    folder: Path,
    model: nn.Module,
    tokenizer: Tokenizer | Pieces,
    settings: StudentSettings,
    pretrained: Mapping[str, Any] | None = None,
) -> None:
    """Write config.json, model.safetensors and the tokenizer of a row of ``students``."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
    tensors = {PREFIX + name: tensor for name, tensor in weights.items()}
    with atomic_path(folder / "model.safetensors") as temporary:
        save_file(tensors, temporary, {"format": "pt"})
    write_tokenizer(folder, tokenizer)
    table = _table(weights) if pretrained is None else model.model.get_input_embeddings().weight
    words, width = table.shape
    config = {
        "architectures": ["SentenceEncoderModel"],
        "model_type": ENCODER_TYPE,
        "dtype": "float32",
        "vocab_size": words,
        "embedding_size": width,
        "architecture": settings.model_dump(),
    }
    if pretrained is not None:
        config["pretrained"] = dict(pretrained)
    write_json(folder / "config.json", config)


def load_encoder(folder: Path | str, device: torch.device | str = "cpu") -> SentenceEncoder:
    """Load a sentence encoder, or a student's encoder."""
    folder, device = Path(folder), torch.device(device)
    with opening(folder, "no sentence encoder", "Give a folder below data/encoders or data/students."):
        config = read_record(folder / "config.json")
        if (kind := config["model_type"]) not in (MODEL_TYPE, ENCODER_TYPE):
            raise ValueError(f"config.json describes a {kind}")
        settings = student_settings(config["architecture"])
        if settings.joint:
            raise ValueError(f"a {settings.name()} student has no vector for a single sentence")
        alone = None if kind == MODEL_TYPE else _read_encoder(folder, config, settings)
    if alone is None:
        student = load_student(folder, device)
        alone = student.model.encoder, student.tokenizer
    model, tokenizer = alone
    check_finite(folder, dict(model.named_parameters()))
    return SentenceEncoder(model.to(device).eval(), tokenizer, settings.max_words, device)


def _read_encoder(
    folder: Path, config: Mapping[str, Any], settings: StudentSettings
) -> tuple[nn.Module, Tokenizer | Pieces]:
    """Return the encoder that :func:`save_encoder` wrote, and its tokenizer."""
    sizes = config["vocab_size"], config["embedding_size"]
    model = build_encoder(settings, *sizes, config.get("pretrained"))
    model.load_state_dict(encoder_weights(folder))
    attend_quickly(model, training=False)
    return model, read_tokenizer(folder, settings.reads)


def encoder_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Return the encoder's tensors by name."""
    tensors = load_file(folder / "model.safetensors")
    return {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}


def encoder_words(folder: Path) -> tuple[Tokenizer, np.ndarray]:
    """Return the encoder's tokenizer and its word vectors, float32 (words, width)."""
    return load_tokenizer(folder), _table(encoder_weights(folder)).numpy()


def _table(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    return next(t for name, t in sorted(tensors.items()) if name.startswith("embeddings."))


def with_vectors(model: StudentNetwork, sentences: Sentences, device: torch.device) -> Sentences:
    """Return the sentences with the encoder's vectors, float32 (rows, width), as the targets ``ENCODED``, in memory."""
    sides = [replace(sentences, second=None)]
    sides += [] if sentences.second is None else [sentences.second]
    vectors = [encode_sentences(model.encoder, side, device) for side in sides]
    encoded = dict(zip(ENCODED, vectors, strict=False))
    return replace(sentences, targets={**sentences.targets, **encoded})
