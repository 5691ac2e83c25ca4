"""What a student asks of the model that gives it word pieces and layers, and a task's rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from ruamel.yaml import YAML

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.distillation.plans import check_fits, check_width, task_rows
from pipeline_lib.params import check_params, student_settings
from pipeline_lib.storage.columns import list_column
from pipeline_lib.storage.shards import Manifest, schema_of, write_manifest, write_shard
from tests.pretrained import FAMILIES, write_model

ROOT = Path(__file__).parents[2]
LAYERS = {
    "architecture": "transformer",
    "model": "minilm",
    "layers": [0, 2],
    "pool": "mean",
    "classifier": None,
}
LAYERS |= {"dropout": None, "max_words": 32}
PIECES = {
    "architecture": "biattentive",
    "tokens": "pieces",
    "model": "minilm",
    "embedding_size": 5,
    "feedforward": 6,
}
PIECES |= {"hidden": 4, "pools": ["max"], "shared": 7, "classifier": 6, "dropout": 0.0}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"layers": [0, 3]}, r"students\.new\.layers: 3, but .* has 3 layers, 0 to 2"),
        ({"max_words": 33}, r"students\.new\.max_words: 33, but .* has 32 positions"),
    ],
)
def test_layers_and_positions_are_the_models(
    tmp_path: Path, family: str, changes: dict[str, Any], message: str | None
) -> None:
    folder = write_model(tmp_path, family)
    if message is None:
        check_fits("students.new", student_settings(LAYERS | changes), folder)
        return
    # MPNet and RoBERTa count positions from behind the padding's number.
    with pytest.raises(DistilleryError, match=message):
        check_fits("students.new", student_settings(LAYERS | changes), folder)


def test_sentences_read_apart_need_no_positions(tmp_path: Path) -> None:
    folder = write_model(tmp_path, "bert")
    check_fits("students.new", student_settings(PIECES | {"max_words": 500}), folder)


@pytest.mark.parametrize("family", FAMILIES)
def test_states_are_as_wide_as_the_students(tmp_path: Path, family: str) -> None:
    folder = write_model(tmp_path / "model", family)
    for width in (16, 24):
        states = tmp_path / str(width)
        table = pa.table({"states": list_column(np.zeros((3, 2, width), np.float16))})
        shards = [write_shard(states / "s0.arrow", table)]
        write_manifest(states, Manifest("states", schema_of(table), shards))
    check_width("methods.pkd", student_settings(LAYERS), folder, tmp_path / "16")
    message = (
        r"methods\.pkd\.objective: the states of .*model have 16 values, those of its teacher 24"
    )
    with pytest.raises(DistilleryError, match=message):
        check_width("methods.pkd", student_settings(LAYERS), folder, tmp_path / "24")


def _default() -> dict[str, Any]:
    return YAML(typ="safe", pure=True).load((ROOT / "params.yaml").read_text())


def _rows(values: dict[str, Any], task: str) -> dict[str, Any]:
    return task_rows(check_params(values), task)


def test_rows_of_other_tasks_do_not_count() -> None:
    before, after = _default(), _default()
    for values in (before, after):
        for row in (*values["methods"].values(), *values["joint"].values()):
            row["teacher"] = "minilm"
    after["teachers"]["other"] = after["teachers"]["minilm"] | {"tasks": ["tweets"]}
    after["transfer"]["own"] = after["transfer"]["full"] | {"tasks": ["tweets"]}
    row = {"data": "own", "teacher": "other", "tasks": ["tweets"]}
    after["methods"]["own"] = after["methods"]["bilstm_kd_ts"] | row
    after["methods"]["bilstm_kd"]["tasks"] = None
    assert _rows(after, "movies") == _rows(before, "movies")
    names = [row["name"] for row in _rows(after, "tweets")["methods"]]
    assert names == [row["name"] for row in _rows(before, "tweets")["methods"]] + ["own"]
    assert _rows(after, "tweets")["transfer"].keys() == {"original", "full", "own"}


@pytest.mark.parametrize(
    ("section", "row", "key", "value"),
    [
        ("methods", "bilstm_kd_ts", "iterations", 1),
        ("methods", "bilstm_kd_ts", "baseline", None),
        ("teachers", "minilm", "max_length", 64),
        ("transfer", "full", "p_mask", 0.2),
    ],
)
def test_what_evaluation_reads_counts(section: str, row: str, key: str, value: Any) -> None:
    values = _default()
    assert values[section][row].get(key) != value
    values[section][row][key] = value
    assert _rows(values, "movies") != _rows(_default(), "movies")


def test_the_order_of_rows_counts() -> None:
    # The step before a row is the nearest row above that differs in one thing.
    values = _default()
    values["methods"] = dict(reversed(values["methods"].items()))
    assert _rows(values, "movies") != _rows(_default(), "movies")
