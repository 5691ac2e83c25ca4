"""The student or sentence encoder to export."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_record
from pipeline_lib.base.kinds import kind_of_model
from pipeline_lib.models.folders import ENCODER_TYPE, STRETCHES, check_outputs, stretches_of, temperature_of
from pipeline_lib.models.networks.student import StudentNetwork
from pipeline_lib.models.students.sentence_encoder import encode_sentences, load_encoder
from pipeline_lib.models.students.student import load_student, predict_sentences
from pipeline_lib.models.students.tokenise import Reader
from pipeline_lib.params import student_settings
from pipeline_lib.text.ragged import Sentences

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Subject:
    """The student or sentence encoder to export.

    :ivar network: a :class:`~pipeline_lib.models.networks.student.StudentNetwork`, or a sentence encoder's module.
    :ivar labels: class names, or the name of a regression's score; None for a sentence encoder.
    """

    folder: Path
    config: dict[str, Any]
    network: torch.nn.Module
    reader: Reader
    labels: list[str] | None
    temperature: float = 1.0

    @property
    def kind(self) -> str:
        """What it is: the kind of its task, as in params.yaml, or a sentence encoder."""
        if self.labels is None:
            return "sentence encoder"
        return kind_of_model(self.labels, self.config)

    @property
    def encoder(self) -> torch.nn.Module:
        """The part of the network that reads words."""
        return self.network.encoder if isinstance(self.network, StudentNetwork) else self.network

    @property
    def width(self) -> int:
        """How many numbers it gives for a text or a pair."""
        return self.network.width if self.labels is None else len(self.labels)

    @property
    def architecture(self) -> str:
        """Its architecture's name in params.yaml."""
        return self.config["architecture"]["architecture"]

    def outputs(self, sentences: Sentences) -> np.ndarray:
        """Return its outputs in torch, float32 (sentences, width)."""
        if self.labels is None:
            outputs = encode_sentences(self.network, sentences, CPU)
        else:
            outputs = predict_sentences(self.network, sentences, CPU) / self.temperature
        return check_outputs(self.folder, outputs)


def read_subject(folder: Path) -> Subject:
    """Load a trained student or a sentence encoder."""
    config = read_record(folder / "config.json")
    if not isinstance(config, dict):
        raise PotstillError(f"{folder}: config.json does not describe a student. Name a student's folder.")
    if config.get("model_type") == ENCODER_TYPE:
        encoder = load_encoder(folder)
        reads = student_settings(config["architecture"]).reads
        reader = Reader(encoder.tokenizer, reads, encoder.max_words, False)
        return Subject(folder, config, encoder.model, reader, None)
    student = load_student(folder)
    config |= {STRETCHES: stretches_of(folder)}
    labels, temperature = student.label_names, temperature_of(folder)
    return Subject(folder, config, student.model, student.reader, labels, temperature)
