"""A second task beside the first: shared rows, rows of its own, nothing of the first moved."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.onboarding.adding import with_task
from pipeline_lib.params import check_params
from pipeline_lib.params.profiles import read_values
from pipeline_lib.params.stage_settings import stage_settings

DEFAULT = read_values(Path(__file__).parents[2] / "profiles" / "default.yaml")


def _new(**changes: Any) -> dict[str, Any]:
    """Return what `init` would write for a task like the default's."""
    values = deepcopy(DEFAULT)
    values["tasks"] = {"reviews": values["tasks"].pop("movies")}
    for path, value in changes.items():
        section, row, key = path.split("__")
        values[section][row][key] = value
    return values


def _settings_of(values: dict[str, Any], task: str) -> dict[str, Any]:
    return {
        stage: settings[task] for stage, settings in stage_settings(check_params(values)).items() if task in settings
    }


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"students__bilstm__max_words": 128},
        {"optimisers__long__max_steps": 900},
        {"transfer__full__p_mask": 0.3},
        {"teachers__minilm__max_length": 256},
        {"methods__bilstm_kd__iterations": 0},
    ],
)
def test_nothing_of_the_first_task_moves(changes: dict[str, Any]) -> None:
    values = with_task(DEFAULT, _new(**changes), "reviews")
    params = check_params(values)
    assert [*params.tasks] == ["movies", "reviews"]
    assert _settings_of(values, "movies") == _settings_of(DEFAULT, "movies")
    # Each task has the three methods, and the second one its own settings.
    assert len(params.methods_of("reviews")) == len(params.methods_of("movies")) == 3
    wanted = _settings_of(_new(**changes), "reviews")
    found = _settings_of(values, "reviews")
    assert _trained(wanted) == _trained(found)


def _trained(settings: dict[str, Any]) -> list[str]:
    """Return what a task's methods are trained with, without the names of the rows."""
    names = dict.fromkeys(("student", "data", "optimiser", "teacher"))
    methods = settings["train"]["methods"]
    return sorted(str([one["row"] | names, one["student"], one["optimiser"]]) for one in methods)


def test_rows_that_both_can_use_are_shared() -> None:
    values = with_task(DEFAULT, _new(), "reviews")
    for section in ("students", "optimisers", "methods", "teachers", "transfer"):
        assert values[section] == DEFAULT[section], section


def test_rows_that_differ_are_named_after_the_task() -> None:
    values = with_task(DEFAULT, _new(students__bilstm__max_words=128), "reviews")
    assert values["students"]["bilstm_reviews"]["max_words"] == 128
    assert values["students"]["bilstm"] == DEFAULT["students"]["bilstm"]
    row = values["methods"]["bilstm_kd_ts_reviews"]
    assert row["student"] == "bilstm_reviews" and row["baseline"] == "bilstm_reviews"
    assert row["tasks"] == ["reviews"] and values["methods"]["bilstm_kd_ts"]["tasks"] == ["movies"]


def test_a_task_of_that_name_is_refused() -> None:
    new = _new()
    new["tasks"] = {"movies": new["tasks"]["reviews"]}
    with pytest.raises(PotstillError, match="there is a task movies already"):
        with_task(DEFAULT, new, "movies")
