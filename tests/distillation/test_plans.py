"""The rows of a task, on which its evaluation depends."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pipeline_lib.distillation.plans import task_rows
from pipeline_lib.params import check_params

ROOT = Path(__file__).parents[2]


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
