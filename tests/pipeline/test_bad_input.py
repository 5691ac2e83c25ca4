"""Input that cannot be used: status 1 and one line that names what to correct."""

import inspect
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.shards.fingerprint import stage_files

from .conftest import Finished
from .workspace import TASK, Workspace

RAW = f"data/raw/tasks/{TASK}/train.tsv"
UNKNOWN = f"params.yaml: tasks.{TASK}.augment.n_itr: unknown key. Take it out or correct it"


def _edited(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (
            _edited("sentence", "text"),
            [f"{RAW}: no column 'sentence'; there are 'label', 'text'", "Correct the name in"],
        ),
        (
            _edited("\n1\t", "\n7\t"),
            [f"{RAW}: row {{row}}, column 'label': '7' is not a label", "Add it there or correct the row"],
        ),
        (lambda text: "", [f"{RAW}: no rows", "Put texts into it"]),
        (lambda text: "label\tsentence\n", [f"{RAW}: no rows", "Put texts into it"]),
        (
            _edited("\n1\t", "\n\t"),
            [f"{RAW}: row {{row}}, column 'label': hidden label ''", "Add the label or take the row out"],
        ),
    ],
    ids=["column", "label", "empty", "header_only", "no_label"],
)
def test_a_bad_file_is_one_line(workspace: Workspace, edit: Callable[[str], str], named: list[str]) -> None:
    path = workspace / "data/input/train.tsv"
    before = path.read_text()
    # The header line counts: an editor shows the same number.
    row = 2 + before[: before.index("\n1\t")].count("\n")
    path.write_text(edit(before))
    workspace.stage("fetch_data").sound()
    error = workspace.stage("prepare").error
    assert [part for part in named if part.format(row=row) not in error] == []


def test_the_row_in_the_message_is_the_files_own(workspace: Workspace) -> None:
    path = workspace / "data/input/train.tsv"
    lines = path.read_text().splitlines()
    lines[41] = "9" + lines[41][1:]
    path.write_text("\n".join(lines) + "\n")
    workspace.stage("fetch_data").sound()
    # An editor shows it as line 42, the header line being the first.
    error = workspace.stage("prepare").error
    assert f"{RAW}: row 42, column 'label': '9' is not a label" in error


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
        (_no_such_recipe, ["params.yaml: methods.bilstm_kd.data: no 'fuller'; there are original, full"]),
    ],
    ids=["key", "type", "reference"],
)
def test_a_bad_parameter_is_one_line(workspace: Workspace, edit: Callable[[Any], None], named: list[str]) -> None:
    workspace.params(edit)
    for name, options in (("fetch_data", ()), ("augment", ())):
        error = workspace.stage(name, *options).error
        assert [part for part in named if part not in error] == []
    assert [part for part in named if part not in workspace.distill("check").error] == []


def _items() -> list[tuple[ModuleType, str]]:
    """Return the stages of a matrix, with the option that names the item."""
    modules = [import_module(f"pipeline_lib.stages.{path.stem}") for path in stage_files()]
    options = [(module, [*inspect.signature(module.main).parameters]) for module in modules]
    return [(module, names[0]) for module, names in options if names]


@pytest.mark.parametrize("name", ["fuller", "", "../transfer"])
def test_an_unknown_name_on_the_command_line_is_one_line_and_deletes_nothing(
    finished: Finished, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    workspace = finished.workspace
    before = sorted((workspace / "data").rglob("*"))
    error = workspace.stage("augment", "--task", name).error
    assert f"tasks: no {name!r} in params.yaml; there are {TASK}." in error
    assert workspace.folder.name not in error
    monkeypatch.chdir(workspace.folder)
    for module, option in _items():
        with pytest.raises(PotstillError, match=f"no {name!r} in params.yaml; there are "):
            module.main(**{option: name})
    assert sorted((workspace / "data").rglob("*")) == before


def test_a_stage_in_a_process_of_its_own_ends_with_status_1(workspace: Workspace) -> None:
    workspace.params(_typo)
    stage = ("python", "-m", "pipeline_lib.stages.fetch_data", "--task", TASK)
    assert UNKNOWN in workspace.command(*stage, fast=False).error
