"""Tiny students of every architecture with random weights, and texts, for the tests of their exports."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from pipeline_lib.models.networks.architectures import build_encoder
from pipeline_lib.models.networks.student import StudentConfig
from pipeline_lib.models.students.sentence_encoder import save_encoder
from pipeline_lib.models.students.student import build_student, save_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import student_settings
from pipeline_lib.training.distillation.initialisation import start_from_layers, start_from_pieces, start_from_sizes
from tests.kit.pretrained import write_model

WORDS = ["a", "film", "good", "dull", "n't", "is", ".", "plot", "café", "the"]
OPEN = [*WORDS, "un", "##he", "##ard"]
"""A vocabulary in which ``unheard`` is read by its pieces."""
WIDTH, MAX_WORDS = 6, 9
COMMON = {"classifier": 5, "dropout": 0.1, "max_words": MAX_WORDS}
READER = COMMON | {"model": "mini", "pool": "mean", "classifier": None}
TWO_LSTMS = {"feedforward": 4, "hidden": 3, "shared": 6}
PIECES = {"tokens": "pieces", "model": "mini", "embedding_size": 5, "pools": ["max", "self"]}
ONLY_WORDS = {"tokens": "words", "model": None, "embedding_size": None}
VALUES: dict[str, dict[str, Any]] = {
    "bilstm": COMMON | {"architecture": "bilstm", "hidden": 5, "embeddings": "multichannel"},
    "bilstm_sra": COMMON | {"architecture": "bilstm_sra", "hidden": 5, "width": 7, "embeddings": "trained"},
    "bilstm-open": COMMON | {"architecture": "bilstm", "hidden": 5, "embeddings": "trained"},
    "static-open": COMMON | {"architecture": "static", "embeddings": "trained"},
    "cnn": COMMON | {"architecture": "cnn", "widths": [1, 2, 4], "filters": 3, "embeddings": "static"},
    "static": COMMON | {"architecture": "static", "embeddings": "trained"},
    "regression": {"architecture": "regression", "ngrams": 3, "buckets": 97, "max_words": MAX_WORDS},
    "biattentive": COMMON
    | TWO_LSTMS
    | ONLY_WORDS
    | {"architecture": "biattentive", "pools": ["max", "mean", "self", "min"]},
    "biattentive-pieces": COMMON | TWO_LSTMS | PIECES | {"architecture": "biattentive"},
    "transformer": READER | {"architecture": "transformer", "layers": [0, 2]},
    "bert": READER
    | {"architecture": "bert", "depth": 2, "width": 8, "heads": 2, "feedforward": 6}
    | {"dropout": 0.1, "pool": "last", "classifier": 5},
    "dse": COMMON | {"architecture": "dse", "model": "mini", "layers": None, "last": 2, "frozen": False},
}
VALUES["transformer-last"] = VALUES["transformer"] | {"pool": "last", "classifier": 5}
VALUES["dse-cls"] = VALUES["dse"] | {"pooling": "cls"}
CASES = [
    *(("bilstm", False, "bert"), ("bilstm", True, "bert"), ("bilstm_sra", False, "bert")),
    *(("bilstm-open", False, "bert"), ("static-open", True, "bert"), ("cnn", False, "bert")),
    *(("static", True, "bert"), ("regression", False, "bert"), ("biattentive", False, "bert")),
    *(("biattentive", True, "bert"), ("biattentive-pieces", True, "bert"), ("bert", False, "bert")),
    *(("transformer", True, "bert"), ("transformer-last", True, "roberta"), ("dse", True, "mpnet")),
    ("dse-cls", True, "bert"),
]
"""Architecture, whether it compares pairs, and the family that its layers or word pieces are of."""


def write_student(
    folder: Path,
    name: str,
    pair: bool,
    labels: list[str],
    family: str = "bert",
    kind: str | None = None,
    **changes: Any,
) -> Path:
    """Write a student with random weights.

    :param family: of the model that its layers or word pieces are of, if it has any.
    :param changes: of its settings.
    """
    settings = student_settings(VALUES[name] | changes)
    torch.manual_seed(3)
    if settings.source_model is None:
        words = OPEN if name.endswith("-open") else WORDS
        config = StudentConfig(len(words) + 2, WIDTH, settings, pair, labels, None, kind)
        save_student(folder, build_student(config, None), build_tokenizer(words, lowercase=True))
        return folder
    model = write_model(folder.with_name(f"model-{family}"), family)
    if settings.pretrained:
        start = start_from_layers(model, settings)
    elif settings.joint and settings.reads == "pieces":
        start = start_from_pieces(model, settings, False)
    else:
        start = start_from_sizes(model, settings)
    save_student(folder, start.build(settings, pair, labels, kind), start.tokenizer)
    return folder


def write_encoder(folder: Path) -> None:
    settings = student_settings(VALUES["bilstm_sra"])
    model = build_encoder(settings, len(WORDS) + 2, WIDTH)
    save_encoder(folder, model, build_tokenizer(WORDS, lowercase=True), settings)


def sample(pair: bool, more: Iterable[str] = ()) -> list[Any]:
    drawn, words = random.Random(5), [*WORDS, "unheard", "3.14", "Ω"]
    lengths = [*range(MAX_WORDS + 4), 0, 5, 2]
    made = [*(" ".join(drawn.choices(words, k=length)) for length in lengths), *more]
    return list(zip(made, made[::-1], strict=True)) if pair else made
