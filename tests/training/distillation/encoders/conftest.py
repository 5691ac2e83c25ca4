"""A teacher, its sentences and a task, and the function that makes rows of encoders over them."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.layout import Layout
from pipeline_lib.outputs.vectors import VectorPass
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.training.distillation.encoders import EncoderTraining
from pipeline_lib.training.distillation.general import encoder_row
from pipeline_lib.training.search import TrainingRow
from tests.pipeline.corpus import write_encoder

from .rows import HELD_BACK, TASK, TRAIN, MakeRow, make_params, write_texts


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write teacher, sentences and a task; return the folder of artifacts."""
    folder = tmp_path_factory.mktemp("data")
    write_encoder(folder / "raw/models/minilm")
    (folder / "raw/vectors").mkdir(parents=True)
    write_texts(folder / "wikipedia/train", TRAIN)
    write_texts(folder / "wikipedia/validation", HELD_BACK)
    write_texts(folder / "tasks" / TASK / "train", ["Zebra words alone."], words=True)
    write_texts(folder / "transfer" / TASK / "original", ["Zebra words alone.", "More of it."])
    return folder


@pytest.fixture
def run(data: Path) -> MakeRow:
    """Return a maker of runs over computed vectors; named arguments change the encoder's row.

    ``optimiser`` changes the optimiser, ``student`` stands in the place of the BiLSTM.
    """

    def make(
        optimiser: dict[str, Any] | None = None, student: dict[str, Any] | None = None, **changes: Any
    ) -> TrainingRow[EncoderTraining]:
        params = make_params(optimiser or {}, changes, student)
        own = VectorPass.of(params, data / "raw/models/minilm")
        for name in ("wikipedia/train", "wikipedia/validation", f"tasks/{TASK}/original"):
            inputs = ShardSet.open(data / name.replace("tasks/", "transfer/"))
            run_pass(own, inputs, data / "vectors" / name, LocalEngine(1))
        return encoder_row(params, "sra", Layout(data), "cpu")

    return make
