"""Building, saving and loading students, and running them over texts."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from pipeline_lib.base.devices import single_thread
from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.files import atomic_path, read_record, write_json
from pipeline_lib.base.kinds import kind_of_model, stated_kind
from pipeline_lib.base.seals import check_sealed
from pipeline_lib.base.text import Text
from pipeline_lib.models.folders import MODEL_TYPE, is_of_library
from pipeline_lib.models.networks.architectures import ENCODERS
from pipeline_lib.models.networks.layers import replace_dropout
from pipeline_lib.models.networks.student import StudentConfig, StudentNetwork
from pipeline_lib.models.networks.transformer import PretrainedLayers
from pipeline_lib.models.students.tokenise import Reader, read_tokenizer, write_tokenizer
from pipeline_lib.models.weights import check_finite, count_parameters
from pipeline_lib.params import StudentSettings, import_extensions, register_settings, student_settings
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.pieces import Pieces
from pipeline_lib.text.ragged import Sentences, to_device

DEFINED_IN = "defined_in"
"""The key in a student's config.json that names the module of an encoder from outside the library."""
PREDICT_BATCH = 256
PRETRAINED_BATCH = 32
"""Batch size of a pretrained model on a CPU, small enough for the cache."""


@dataclass
class Student:
    """A trained student and its word or word-piece tokenizer, on one device."""

    model: StudentNetwork
    tokenizer: Tokenizer | Pieces
    device: torch.device

    @property
    def label_names(self) -> list[str]:
        """Class names, by class index."""
        return self.model.config.label_names

    @property
    def kind(self) -> str:
        """The kind of its task."""
        return self.model.config.kind or kind_of_model(self.label_names, {})

    @property
    def is_pair(self) -> bool:
        """Whether it compares two sentences."""
        return self.model.config.pair

    def parameters(self, embeddings: bool) -> int:
        """Count parameters, with or without the embedding tables."""
        return count_parameters(self.model, embeddings)

    def logits(self, texts: Sequence[Text]) -> np.ndarray:
        """Return logits, not divided by a temperature, or a regression's scores, float32 (texts, outputs)."""
        return predict_sentences(self.model, self.encode(texts), self.device)

    def logits_and_features(self, texts: Sequence[Text]) -> tuple[np.ndarray, np.ndarray]:
        """Return the logits, and what the output layer makes them of, float32 (texts, width)."""
        features = np.empty((len(texts), self.model.logits.in_features), np.float32)
        return predict_sentences(self.model, self.encode(texts), self.device, features), features

    def encode(self, texts: Sequence[Text]) -> Sentences:
        """Tokenize each text or pair, truncated to the student's maximum length."""
        return self.reader.encode(texts)

    @cached_property
    def reader(self) -> Reader:
        """Its tokenizer, and how it reads texts."""
        settings = self.model.config.settings
        return Reader(self.tokenizer, settings.reads, settings.max_words, self.is_pair)


def predict_sentences(
    model: StudentNetwork, sentences: Sentences, device: torch.device, features: np.ndarray | None = None
) -> np.ndarray:
    """Return outputs, float32 (sentences, outputs); ``features`` (sentences, width) gets the output layer's input."""
    outputs = np.empty((len(sentences), len(model.config.label_names)), np.float32)
    model.eval()
    read: list[torch.Tensor] = []
    watched = nullcontext() if features is None else _inputs_of(model.logits, read)
    with torch.inference_mode(), quick_threads(model.encoder, device), watched:
        for rows in LengthSorted(sentences, quick_batch(model.encoder, device), seed=0).epoch(0):
            batch = to_device(sentences.batch(rows), device)
            outputs[rows] = model.outputs(batch)["logits"].float().cpu().numpy()
            if features is not None:
                features[rows] = read.pop().float().cpu().numpy()
    return outputs


@contextmanager
def _inputs_of(layer: torch.nn.Module, read: list[torch.Tensor]) -> Iterator[None]:
    """Append what a layer reads to a list, a tensor per forward pass."""
    hook = layer.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    try:
        yield
    finally:
        hook.remove()


def quick_threads(encoder: torch.nn.Module, device: torch.device) -> AbstractContextManager[None]:
    """Return the context in which an encoder is fastest.

    On a CPU that is a single thread, unless it is a pretrained model: an LSTM's steps are too small
    to parallelise (on two cores, alongside other work, two threads took 2.5 times as long).
    """
    alone = device.type == "cpu" and not isinstance(encoder, PretrainedLayers)
    return single_thread() if alone else nullcontext()


def quick_batch(encoder: torch.nn.Module, device: torch.device) -> int:
    """Return an encoder's batch size for prediction."""
    small = device.type == "cpu" and isinstance(encoder, PretrainedLayers)
    return PRETRAINED_BATCH if small else PREDICT_BATCH


def build_student(config: StudentConfig, vectors: np.ndarray | None) -> StudentNetwork:
    """Return an untrained student with ``vectors`` as its word vectors, or random ones."""
    model = StudentNetwork(config)
    if vectors is not None:
        model.encoder.embeddings.load(torch.from_numpy(vectors))
    return model


def save_student(folder: Path, model: StudentNetwork, tokenizer: Tokenizer | Pieces) -> None:
    """Write config.json, model.safetensors and the tokenizer, as ``save_pretrained`` would."""
    folder.mkdir(parents=True, exist_ok=True)
    model_config = model.config
    numbered = dict(enumerate(model_config.label_names))
    config = {
        "architectures": ["StudentForSequenceClassification"],
        "model_type": MODEL_TYPE,
        "dtype": "float32",
        "vocab_size": model_config.vocab_size,
        "embedding_size": model_config.embedding_size,
        "architecture": model_config.settings.model_dump(),
        "pair": model_config.pair,
        "id2label": {str(number): name for number, name in numbered.items()},
        "label2id": {name: number for number, name in numbered.items()},
    }
    if model_config.kind is not None:
        config |= stated_kind(model_config.kind, model_config.label_names)
    if model_config.pretrained is not None:
        config["pretrained"] = dict(model_config.pretrained)
    if not is_of_library(model.encoder):
        config[DEFINED_IN] = type(model.encoder).__module__
    tensors = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
    with atomic_path(folder / "model.safetensors") as temporary:
        save_file(tensors, temporary, {"format": "pt"})
    write_tokenizer(folder, tokenizer)
    write_json(folder / "config.json", config)


@contextmanager
def opening(folder: Path, what: str, remedy: str) -> Iterator[None]:
    """Check the seal of a model's folder; within the block, word what is missing or damaged in one way."""
    check_sealed(folder)
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError, PotstillError) as error:
        raise PotstillError(f"{folder}: {what} ({reason_of(error)}). {remedy}") from error


def load_student(folder: Path | str, device: torch.device | str = "cpu") -> Student:
    """Load a trained student."""
    folder = Path(folder)
    with opening(folder, "not a trained student", "Train it with `distill run`, or give a folder below data/students."):
        config = read_record(folder / "config.json")
        if DEFINED_IN in config:
            import_extensions([config[DEFINED_IN]], f"{folder}/config.json: {DEFINED_IN}")
        model = StudentNetwork(_config(config))
        model.load_state_dict(load_file(folder / "model.safetensors"))
        tokenizer = read_tokenizer(folder, model.config.settings.reads)
    check_finite(folder, dict(model.named_parameters()))
    attend_quickly(model.to(device).eval(), training=False)
    return Student(model, tokenizer, torch.device(device))


def attend_quickly(model: torch.nn.Module, training: bool) -> None:
    """If a student or encoder is a transformers model, use the fastest attention on its device.

    :param training: whether it is trained, which also makes its dropout fast; a frozen encoder only predicts.
    """
    encoder = getattr(model, "encoder", model)
    if not isinstance(encoder, PretrainedLayers):
        return
    from pipeline_lib.models.networks.attention import use_short_attention, use_training_attention

    if training and not encoder.frozen:
        use_training_attention(encoder.model)
        replace_dropout(encoder.model)
    else:
        use_short_attention(encoder.model)


def register_student(settings: type[StudentSettings], encoder: type[torch.nn.Module]) -> None:
    """Register an architecture: its settings in params.yaml, and the encoder built from them.

    :param encoder: called with words, width and the settings; it has a ``width``, and maps ids and lengths to
        sentence vectors as :meth:`~pipeline_lib.models.networks.encoders.BiLSTMEncoder.forward` does.  If the
        settings are ``joint``, it maps the whole input to named outputs, as
        :meth:`~pipeline_lib.models.networks.biattentive.BiAttentiveReader.forward` does.
    """
    register_settings(settings)
    ENCODERS[settings.name()] = encoder


def _config(config: dict[str, Any]) -> StudentConfig:
    if config["model_type"] != MODEL_TYPE:
        raise ValueError(f"config.json describes a {config['model_type']}")
    names = [config["id2label"][str(number)] for number in range(len(config["id2label"]))]
    return StudentConfig(
        config["vocab_size"],
        config["embedding_size"],
        student_settings(config["architecture"]),
        config["pair"],
        names,
        config.get("pretrained"),
        kind_of_model(names, config),
    )
