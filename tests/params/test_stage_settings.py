"""What each stage reads of params.yaml: all of it, and nothing that it does not read."""

from typing import Any

import pytest
from ruamel.yaml import YAML

from pipeline_lib.params import check_params
from pipeline_lib.params.stage_settings import stage_settings
from tests.tour import TOUR


def _default() -> dict[str, Any]:
    return YAML(typ="safe", pure=True).load(TOUR.read_text())


def _settings(values: dict[str, Any]) -> dict[tuple[str, str | None], Any]:
    by_stage = stage_settings(check_params(values)).items()
    return {(stage, item): own for stage, settings in by_stage for item, own in settings.items()}


def _moved(section: str, row: str, **changes: Any) -> set[str]:
    """Return the stages and items whose settings change with a row of params.yaml."""
    values = _default()
    values[section][row] |= changes
    before, after = _settings(_default()), _settings(values)
    assert before.keys() == after.keys()
    return {f"{stage}@{item}" for (stage, item) in before if before[stage, item] != after[stage, item]}


TASKS = ("movies", "tweets", "neighbours")


def _each(stage: str, *tasks: str) -> set[str]:
    return {f"{stage}@{task}" for task in tasks or TASKS}


@pytest.mark.parametrize(
    ("section", "row", "changes", "moved"),
    [
        ("methods", "bilstm_kd", {"start": "random"}, {*_each("train", *TASKS[:2]), *_each("evaluate", *TASKS[:2])}),
        ("methods", "bilstm_sra", {"iterations": 0}, {*_each("train", "neighbours"), *_each("evaluate", "neighbours")}),
        ("methods", "bilstm_kd_ts", {"baseline": None}, _each("evaluate", *TASKS[:2])),
        ("methods", "bilstm_sra", {"temperature": "dev"}, {"evaluate@neighbours"}),
        ("transfer", "full", {"p_mask": 0.2}, {*_each("augment", *TASKS[:2]), *_each("evaluate", *TASKS[:2])}),
        ("optimisers", "short", {"epochs": 7}, _each("train")),
        ("optimisers", "pretraining", {"epochs": 7}, {"pretrain@sra"}),
        ("optimisers", "joint", {"epochs": 7}, {"train_joint@mtl"}),
        ("students", "bilstm", {"hidden": 99}, {*_each("train"), "train_joint@mtl"}),
        ("students", "bilstm_sra", {"classifier": 99}, {"train@neighbours", "pretrain@sra"}),
        ("joint", "mtl", {"start": "random"}, {"train_joint@mtl"}),
        ("encoders", "sra", {"centre": False}, {"pretrain@sra"}),
        ("tasks", "movies", {"augment": {"n_iter": 9, "cap": None}}, set()),
        ("tasks", "movies", {"metrics": ["f1"]}, {"train@movies", "evaluate@movies", "train_joint@mtl"}),
    ],
)
def test_a_change_moves_what_reads_it(section: str, row: str, changes: dict[str, Any], moved: set[str]) -> None:
    assert _moved(section, row, **changes) == moved


def test_a_teachers_tuning_moves_its_tuning_and_not_its_answers() -> None:
    values = _default()
    tuning = values["teachers"]["minilm"]["tuning"] | {"epochs": 9}
    # The evaluation has the teacher's row, for the tables.
    assert _moved("teachers", "minilm", tuning=tuning) == {*_each("finetune_teacher"), *_each("evaluate")}
    states = {"layers": [1, 2], "storage": "float16"}
    assert "finetune_teacher@movies" not in _moved("teachers", "minilm", states=states)


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
    one, other = _settings(before), _settings(after)
    assert {key for key in one if key[1] == "movies" and one[key] != other[key]} == set()
    names = [row["name"] for row in other["evaluate", "tweets"]["methods"]]
    assert {*names} == {row["name"] for row in one["evaluate", "tweets"]["methods"]} | {"own"}
    transfer = {row["name"] for row in other["evaluate", "tweets"]["transfer"]}
    assert transfer == {"original", "full", "own"}


def test_the_order_of_rows_counts_where_it_matters() -> None:
    # The step before a row is the nearest row above that differs in one thing.
    values = _default()
    values["methods"] = dict(reversed(values["methods"].items()))
    assert _settings(values)["evaluate", "movies"] != _settings(_default())["evaluate", "movies"]
    # Classes are numbered in their order.
    values = _default()
    labels = values["tasks"]["movies"]["labels"]
    values["tasks"]["movies"]["labels"] = dict(reversed(labels.items()))
    assert _settings(values)["train", "movies"] != _settings(_default())["train", "movies"]
