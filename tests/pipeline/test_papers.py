"""The papers' profiles, from folders in the hub's layout to the scores: a few tasks, tiny sizes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pipeline_lib.base.workspace import shipped
from pipeline_lib.params import load_params
from pipeline_lib.params.profiles import read_values
from tests.papers import write_inputs

from .workspace import Workspace

STUDENT = {"hidden": 2, "classifier": 4, "embedding_size": 4, "feedforward": 24, "shared": 4}
"""Sizes of students, where these have them."""
WIDTH = 24
"""That of the tiny BERT-base, which students of its width have."""
WIKIPEDIA = {"sentences": 80, "validation": {"share": 0.2, "sentences": 20}, "shard_rows": 40}


def cut(values: dict[str, Any], tasks: list[str]) -> None:
    """Leave a profile with some of its tasks, all rows of theirs, and small sizes."""
    values["tasks"] = {name: values["tasks"][name] for name in tasks}
    for task in values["tasks"].values():
        task["blocks"] = 2
        task["augment"]["n_iter"] = min(1, task["augment"]["n_iter"])
    for teacher in values["teachers"].values():
        teacher["tuning"] |= {"learning_rates": [1.0e-3], "epochs": 1}
    for student in values["students"].values():
        student |= {key: size for key, size in STUDENT.items() if student.get(key)}
        student |= {"width": WIDTH} if "width" in student else {}
    for optimiser in values["optimisers"].values():
        optimiser |= {"learning_rates": optimiser["learning_rates"][:1], "max_steps": 2}
    if values["wikipedia"]:
        values["wikipedia"] |= WIKIPEDIA
    for encoder in (encoder for encoder in values["encoders"].values() if encoder.get("wikipedia")):
        encoder["wikipedia"] //= 50_000
    values["vocabulary"]["dimensions"] = values["vocabulary"]["dimensions"] and 8
    _keep_rows(values, tasks)
    values |= {"seeds": [1], "device": "cpu", "workers": 1}


def _keep_rows(values: dict[str, Any], tasks: list[str]) -> None:
    for row in [*values["encoders"].values(), *values["joint"].values()]:
        if "tasks" in row:
            row["tasks"] = {task: data for task, data in row["tasks"].items() if task in tasks}
    for row in (row for row in values["methods"].values() if row.get("tasks")):
        row["tasks"] = [task for task in row["tasks"] if task in tasks]
    for section in ("joint", "methods"):
        rows = values[section].items()
        values[section] = {name: row for name, row in rows if row.get("tasks") not in ([], {})}
    rows = values["similarity"].items()
    values["similarity"] = {name: row for name, row in rows if row["task"] in tasks}


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers")
    write_inputs(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("tang", ["sst2"]),
        ("thesis", ["stsb"]),
        ("thesis_mkd", ["sst2", "mrpc", "stsb", "qnli"]),
        ("sra", ["qqp"]),
        ("dse", ["mnli"]),
    ],
)
def test_a_paper_runs_to_its_scores(
    new_workspace: Callable[[Path], Workspace], inputs: Path, tmp_path: Path, name: str, tasks: list[str]
) -> None:
    workspace = new_workspace(tmp_path / "workspace")
    (workspace / "data/input").rename(tmp_path / "others")
    (workspace / "data/input").symlink_to(inputs)
    values = read_values(shipped("profiles") / f"{name}.yaml")
    cut(values, tasks)
    (workspace / "profiles").mkdir()
    YAML().dump({"extends": f"{name}.yaml"} | values, workspace / "profiles/tiny.yaml")
    workspace.distill("profile", "use", "tiny", "--force").sound()
    workspace.dvc("repro").sound()
    scores, paper = (
        json.loads((workspace / "metrics.json").read_text()),
        load_params(shipped("profiles") / f"{name}.yaml"),
    )
    assert {*scores} == {*tasks}
    for task in tasks:
        assert {*scores[task]["methods"]} == {*paper.scored_methods_of(task)}
        assert {*scores[task]["teachers"]} == {*paper.teachers_of(task)}
