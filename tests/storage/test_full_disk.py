"""A disk that fills while weights, tokenizers and checkpoints are written: one clear error each."""

import multiprocessing
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.networks.student import StudentConfig
from pipeline_lib.params import student_settings
from pipeline_lib.storage.shards import write_shard
from pipeline_lib.students.sentence_encoder import save_encoder
from pipeline_lib.students.student import build_student, save_student
from pipeline_lib.students.vocabulary import build_tokenizer, save_vocabulary
from pipeline_lib.training.checkpoint import Progress, State

LIMIT = 4096
"""Bytes after which the system lets no file grow: to a program as if the disk were full."""
WORDS = [f"word{number}" for number in range(1000)]
VALUES = {"architecture": "static", "classifier": 4, "embeddings": "trained"}
SETTINGS = student_settings(VALUES | {"dropout": 0.0, "max_words": 8})


def student(folder: Path) -> None:
    config = StudentConfig(len(WORDS) + 2, 8, SETTINGS, False, ["no", "yes"])
    save_student(folder, build_student(config, None), build_tokenizer(WORDS, True))


def encoder(folder: Path) -> None:
    config = StudentConfig(len(WORDS) + 2, 8, SETTINGS, False, ["no", "yes"])
    model = build_student(config, None).encoder
    save_encoder(folder, model, build_tokenizer(WORDS, True), SETTINGS)


def vocabulary(folder: Path) -> None:
    save_vocabulary(folder, build_tokenizer(WORDS, True), np.zeros((1002, 8), np.float32))


def checkpoint(folder: Path) -> None:
    model = torch.nn.Linear(100, 100)
    State(model, torch.optim.Adam(model.parameters()), Progress()).save(folder / "a.safetensors")


def shard(folder: Path) -> None:
    import pyarrow as pa

    write_shard(folder / "b000.arrow", pa.table({"x": np.arange(10_000)}))


def fill(write: Callable[[Path], None], folder: Path, answer: "multiprocessing.Queue[str]") -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
    try:
        write(folder)
    except DistilleryError as error:
        answer.put(str(error))
    except BaseException as error:
        answer.put(f"no clear error: {error!r}")
    else:
        answer.put("no error")


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (student, "model.safetensors"),
        (encoder, "model.safetensors"),
        (vocabulary, "tokenizer.json"),
        (checkpoint, "a.safetensors"),
        (shard, "b000.arrow"),
    ],
)
def test_a_full_disk_is_one_error(tmp_path: Path, write: Callable[[Path], None], name: str) -> None:
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=fill, args=(write, tmp_path / "folder", answer))
    process.start()
    found = answer.get(timeout=120)
    process.join()
    assert found.startswith(f"{tmp_path}/folder/{name}: could not be written (")
    assert "File too large" in found and "Free disk space" in found
    assert not list((tmp_path / "folder").glob(".*.tmp"))
