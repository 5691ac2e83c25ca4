"""Rows of encoders over a small teacher's vectors: what the tests of this folder train."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.words import split_words
from pipeline_lib.params import check_params
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.training_records import VectorEncoderRecord
from pipeline_lib.training.distillation.encoders import EncoderTraining
from pipeline_lib.training.search import TrainingRow, train_rows
from tests.kit.shard_files import write_set
from tests.params.variants import changed
from tests.pipeline.corpus import sentences
from tests.pipeline.workspace import small_params

MakeRow = Callable[..., TrainingRow[EncoderTraining]]
TASK = "reviews"
LAYER = {
    **{"architecture": "dse", "model": "minilm", "layers": [0], "last": 1, "width": 32},
    **{"classifier": 8, "dropout": 0.0, "frozen": False, "max_words": 16},
}
"""One layer of the teacher's two, with a linear map behind it."""
TRAIN, HELD_BACK = ([text for _, text in sentences()[split]] for split in ("train", "dev"))


def ignore(*_: Any) -> None:
    """Show no progress."""


def train_one(row: TrainingRow[EncoderTraining], target: Path, on_progress: Callable[..., None]) -> VectorEncoderRecord:
    """Train one encoder into ``target`` and return its record; ``on_progress`` gets messages."""
    found = train_rows([row], LocalEngine(1), lambda _, message: on_progress(*message))[row.name]
    [(training, record)] = found.trainings.values()
    training.result.link_into(target)
    found.write(target)
    return record


def first_of(row: TrainingRow[EncoderTraining]) -> EncoderTraining:
    return row.spec(row.seeds[0], row.rates[0])


def key_of(row: TrainingRow[EncoderTraining]) -> str:
    return first_of(row).result.key


def write_texts(folder: Path, texts: list[str], words: bool = False) -> None:
    columns = {"key": pa.array(string_keys(texts)), "text": pa.array(texts)}
    if words:
        columns["words"] = pa.array([split_words(text)[0] for text in texts])
    table = pa.table(columns)
    half = len(texts) // 2
    write_set(folder, "sentences", {"s0.arrow": table.slice(0, half), "s1.arrow": table.slice(half)})


def make_params(optimiser: dict[str, Any], changes: dict[str, Any], student: dict[str, Any] | None) -> Any:
    values = small_params()
    bilstm = {"architecture": "bilstm_sra", "hidden": 16, "width": 32, "classifier": 8}
    bilstm |= {"embeddings": "trained", "dropout": 0.1, "max_words": 16}
    values["students"]["bilstm_sra"] = student or bilstm
    values["optimisers"]["sra"] = values["optimisers"]["short"] | {
        **{"batch_size": 32, "epochs": 8, "evaluate_every": None, "learning_rates": [1.0e-2]},
        **optimiser,
    }
    row = {"student": "bilstm_sra", "wikipedia": None, "min_count": 1, "tasks": {}}
    row |= {"centre": False, "optimiser": "sra"}
    values["encoders"] = {"sra": row | changes}
    values["wikipedia"] = changed({})["wikipedia"]
    return check_params(values)
