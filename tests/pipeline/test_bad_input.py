"""Input that cannot be used: status 1 and one line that names what to correct."""

from collections.abc import Callable
from typing import Any

import pytest

from .workspace import TASK, Workspace

RAW = f"data/raw/tasks/{TASK}/train.tsv"
UNKNOWN = f"params.yaml: tasks.{TASK}.augment.n_itr: unknown key. Remove or correct it"


def _relabelled(label: str) -> Callable[[str], str]:
    """Return what gives the 42nd line, as an editor counts, another label."""

    def edit(text: str) -> str:
        lines = text.split("\n")
        lines[41] = label + lines[41][1:]
        return "\n".join(lines)

    return edit


@pytest.mark.parametrize(
    ("edit", "fault", "remedy"),
    [
        (
            lambda text: text.replace("sentence", "text", 1),
            "no column 'sentence'; there are 'label', 'text'",
            "Correct the name in",
        ),
        (_relabelled("7"), "row 42, column 'label': '7' is not a label", "Add it there or correct the row"),
        (_relabelled(""), "row 42, column 'label': hidden label ''", "Add the label or take the row out"),
        (lambda text: "", "no rows", "Put texts into it"),
    ],
    ids=["column", "label", "no_label", "empty"],
)
def test_a_bad_file_is_one_line(workspace: Workspace, edit: Callable[[str], str], fault: str, remedy: str) -> None:
    path = workspace / "data/input/train.tsv"
    path.write_text(edit(path.read_text()))
    workspace.stage("fetch_data").sound()
    error = workspace.stage("prepare").error
    assert f"{RAW}: {fault}" in error and remedy in error


def test_a_missing_file_is_one_line(workspace: Workspace) -> None:
    workspace.forget("data/input/dev.tsv")
    error = workspace.stage("fetch_data").error
    assert f"params.yaml: tasks.{TASK}.source.files.dev: data/input/dev.tsv not found" in error
    assert "Put the file there, or correct the path" in error


def _typo(params: Any) -> None:
    params["tasks"][TASK]["augment"]["n_itr"] = 3


def _wrong_type(params: Any) -> None:
    params["seeds"] = "one"


def _no_such_recipe(params: Any) -> None:
    params["methods"]["bilstm_kd"]["data"] = "fuller"


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (_typo, [UNKNOWN, "(did you mean `n_iter`?)"]),
        (_wrong_type, ["params.yaml: seeds: Input should be a valid list (found 'one')"]),
        (_no_such_recipe, ["params.yaml: methods.bilstm_kd.data: no transfer set 'fuller'; there are original, full"]),
    ],
    ids=["key", "type", "reference"],
)
def test_a_bad_parameter_is_one_line(workspace: Workspace, edit: Callable[[Any], None], named: list[str]) -> None:
    workspace.params(edit)
    for error in (workspace.stage("augment").error, workspace.distill("check").error):
        assert [part for part in named if part not in error] == []


def test_a_stage_in_a_process_of_its_own_ends_with_status_1(workspace: Workspace) -> None:
    stage = ("python", "-m", "pipeline_lib.stages.fetch_data", "--task", "other")
    assert f"tasks: no 'other' in params.yaml; there are {TASK}." in workspace.command(*stage, fast=False).error
