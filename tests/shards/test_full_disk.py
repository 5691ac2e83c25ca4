"""A disk that fills while weights, tokenizers and checkpoints are written: one clear error each."""

import multiprocessing
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.networks.student import StudentConfig
from pipeline_lib.models.students.sentence_encoder import save_encoder
from pipeline_lib.models.students.student import build_student, save_student
from pipeline_lib.models.students.vocabulary import build_tokenizer, save_vocabulary
from pipeline_lib.params import student_settings
from pipeline_lib.shards.shard_sets import write_shard
from pipeline_lib.training.checkpoint import Progress, State

pytestmark = pytest.mark.slow
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


WRITERS = {
    "student": (student, "model.safetensors"),
    "encoder": (encoder, "model.safetensors"),
    "vocabulary": (vocabulary, "tokenizer.json"),
    "checkpoint": (checkpoint, "a.safetensors"),
    "shard": (shard, "b000.arrow"),
}
"""What writes, and the first file that does not fit."""


def fill(folder: Path, answer: "multiprocessing.Queue[dict[str, str]]") -> None:
    """Have each of them write into a folder of its name, and answer with their errors."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
    answer.put({name: error_of(write, folder / name) for name, (write, _) in WRITERS.items()})


def error_of(write: Callable[[Path], None], folder: Path) -> str:
    try:
        write(folder)
    except PotstillError as error:
        return str(error)
    except BaseException as error:
        return f"no clear error: {error!r}"
    return "no error"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Fill the disk of a process of its own; return the folder it wrote to, and the errors."""
    folder, context = tmp_path_factory.mktemp("full"), multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=fill, args=(folder, answer))
    process.start()
    errors = answer.get(timeout=120)
    process.join()
    return folder, errors


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_one_error(full: tuple[Path, dict[str, str]], name: str) -> None:
    folder, errors = full[0] / name, full[1]
    assert errors[name].startswith(f"{folder}/{WRITERS[name][1]}: could not be written (")
    assert "File too large" in errors[name] and "Free disk space" in errors[name]
    assert not list(folder.glob(".*.tmp"))
