"""Input that cannot be used: status 1 and one line that names what to correct."""

from typing import Any

from .workspace import TASK, Workspace

UNKNOWN = f"params.yaml: tasks.{TASK}.augment.n_itr: unknown key. Remove or correct it"


def test_a_bad_parameter_is_one_line(workspace: Workspace) -> None:
    def typo(params: Any) -> None:
        params["tasks"][TASK]["augment"]["n_itr"] = 3

    workspace.params(typo)
    for error in (workspace.stage("augment").error, workspace.distill("check").error):
        assert UNKNOWN in error and "(did you mean `n_iter`?)" in error


def test_a_stage_in_a_process_of_its_own_ends_with_status_1(workspace: Workspace) -> None:
    stage = ("python", "-m", "pipeline_lib.stages.fetch_data", "--task", "other")
    assert f"tasks: no 'other' in params.yaml; there are {TASK}." in workspace.command(*stage, fast=False).error
