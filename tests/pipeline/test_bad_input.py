"""Input that cannot be used: status 1 and one line that names what to correct."""

from typing import Any

from .workspace import TASK, Workspace

RAW = f"data/raw/tasks/{TASK}/train.tsv"
UNKNOWN = f"params.yaml: tasks.{TASK}.augment.n_itr: unknown key. Remove or correct it"


def test_a_bad_file_is_one_line(workspace: Workspace) -> None:
    path = workspace / "data/input/train.tsv"
    lines = path.read_text().split("\n")
    lines[41] = "7" + lines[41][1:]
    path.write_text("\n".join(lines))
    workspace.stage("fetch_data").sound()
    error = workspace.stage("prepare").error
    assert f"{RAW}: row 42, column 'label': '7' is not a label" in error and "Add it there or correct the row" in error


def test_a_missing_file_is_one_line(workspace: Workspace) -> None:
    workspace.forget("data/input/dev.tsv")
    error = workspace.stage("fetch_data").error
    assert f"params.yaml: tasks.{TASK}.source.files.dev: data/input/dev.tsv not found" in error
    assert "Put the file there, or correct the path" in error


def test_a_bad_parameter_is_one_line(workspace: Workspace) -> None:
    def typo(params: Any) -> None:
        params["tasks"][TASK]["augment"]["n_itr"] = 3

    workspace.params(typo)
    for error in (workspace.stage("augment").error, workspace.distill("check").error):
        assert UNKNOWN in error and "(did you mean `n_iter`?)" in error


def test_a_stage_in_a_process_of_its_own_ends_with_status_1(workspace: Workspace) -> None:
    stage = ("python", "-m", "pipeline_lib.stages.fetch_data", "--task", "other")
    assert f"tasks: no 'other' in params.yaml; there are {TASK}." in workspace.command(*stage, fast=False).error
