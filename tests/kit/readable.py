"""A workspace of tiny models whose answers a reader can follow: a triumph is good, hours are not.

A word is one number, its worth; a sentence is the mean of its words'.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.exports.onnx.exporter import export_onnx
from pipeline_lib.models.networks.architectures import build_encoder
from pipeline_lib.models.networks.student import StudentConfig, StudentNetwork
from pipeline_lib.models.students.sentence_encoder import save_encoder
from pipeline_lib.models.students.student import save_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import student_settings
from pipeline_lib.shards.shard_sets import Manifest, schema_of, write_manifest, write_shard
from tests.kit.pretrained import write_model

WORTH = {"triumph": 3.0, "quiet": 0.15, "dull": -3.0, "hours": -3.3}
WORDS = [*WORTH, "a", "two", "i", "will", "not", "get", "back"]
COMMON = {"dropout": 0.0, "max_words": 64, "embeddings": "trained"}
MEAN = {"architecture": "static", "classifier": 2} | COMMON
VECTORS = {"architecture": "bilstm_sra", "hidden": 2, "width": 384, "classifier": 2} | COMMON
TEXTS = ["a quiet triumph", "a quiet [MASK]", "a dull triumph"]


def write_workspace(folder: Path) -> Path:
    """Write students, a teacher, an encoder, a transfer set and an exported student."""
    layout = Layout(folder / "data")
    student = layout.student("movies", "bilstm_kd_ts", 1)
    save(student, False, ["negative", "positive"], [[-1.0], [1.0]], [[1.0, -1.0], [-1.0, 1.0]])
    save(layout.student("tweets", "bilstm", 1), False, ["mean"], [[-1.0], [1.0]], [[-1.0, 1.0]])
    # The features of a pair are both vectors, their product and their distance.
    hidden, outputs = [[0.0, 0.0, 0.0, 1.0], [0.0] * 4], [[2.0, 0.0], [-2.0, 0.0]]
    names = ["apart", "neighbours"]
    save(layout.student("neighbours", "bilstm_sra", 1), True, names, hidden, outputs, [-2.0, 2.0])
    export_onnx(student, folder / "exported")
    write_teacher(layout.teacher("movies", "minilm"))
    settings = student_settings(VECTORS)
    tokenizer = build_tokenizer(WORDS, lowercase=True)
    encoder = build_encoder(settings, len(WORDS) + 2, 1)
    save_encoder(layout.encoder("sra"), encoder, tokenizer, settings)
    write_shards(layout.transfer("movies", "full"))
    return folder


def save(
    folder: Path,
    pair: bool,
    labels: list[str],
    hidden: list[list[float]],
    outputs: list[list[float]],
    bias: list[float] | None = None,
) -> None:
    """Write a student with these weights of its two layers, and without biases in the first."""
    settings = student_settings(MEAN)
    network = StudentNetwork(StudentConfig(len(WORDS) + 2, 1, settings, pair, labels))
    worth = [0.0, 0.0, *(WORTH.get(word, 0.0) for word in WORDS)]
    weights: dict[str, Any] = {
        "encoder.embeddings.trained.weight": [[value] for value in worth],
        "hidden.0.weight": hidden,
        "hidden.0.bias": [0.0, 0.0],
        "logits.weight": outputs,
        "logits.bias": bias or [0.0] * len(labels),
    }
    network.load_state_dict({name: torch.tensor(values) for name, values in weights.items()})
    save_student(folder, network, build_tokenizer(WORDS, lowercase=True))


def write_teacher(folder: Path) -> None:
    """Write a classifier of transformers with random weights, as ``finetune_teacher`` would."""
    from transformers import AutoModelForSequenceClassification

    write_model(folder, "bert")
    names = {0: "negative", 1: "positive"}
    head = {"id2label": names, "label2id": {name: number for number, name in names.items()}}
    AutoModelForSequenceClassification.from_pretrained(folder, **head).save_pretrained(folder)
    write_json(folder / "training.json", {"max_length": 16})


def write_shards(folder: Path) -> None:
    table = pa.table({"text": TEXTS})
    parts = [table.slice(0, 2), table.slice(2)]
    shards = [write_shard(folder / f"b000-i00{number}.arrow", part) for number, part in enumerate(parts)]
    write_manifest(folder, Manifest("transfer", schema_of(table), shards))
