"""The user's own files under DVC: what an edited one reruns, wherever it lies."""

import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .workspace import TASK, Workspace, flip_byte

OTHER = "others"
FETCHED = tuple(f"fetch_data@{task}" for task in (TASK, OTHER))
STAGES = ("fetch_models", *FETCHED)


@pytest.fixture(scope="module")
def two_tasks(new_workspace: Callable[[Path], Workspace], tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Fetch two tasks, one of them from outside ``inputs``, and a model behind a link."""
    folder = tmp_path_factory.mktemp("inputs")
    workspace, outside = new_workspace(folder / "workspace"), folder / "outside"
    inputs = workspace / "data/input"
    shutil.copytree(inputs, outside)
    shutil.rmtree(inputs / "encoder")
    (inputs / "encoder").symlink_to(outside / "encoder")

    def edit(values: Any) -> None:
        task = values["tasks"][TASK]
        files = {split: str(outside / f"{split}.tsv") for split in ("train", "dev")}
        values["tasks"][OTHER] = task | {"source": task["source"] | {"files": files}}

    workspace.params(edit)
    # Nothing writes to it, so nothing reads it to its end.
    os.mkfifo(inputs / "pipe")
    assert {*STAGES} <= {*workspace.dvc("repro", *STAGES).sound().stages}
    return workspace


def _fetched_again(workspace: Workspace) -> list[str]:
    return workspace.dvc("repro", *STAGES).sound().stages


def _outside(workspace: Workspace, name: str) -> Path:
    return workspace.folder.parent / "outside" / name


def test_what_is_fetched_again_is_what_has_changed(two_tasks: Workspace) -> None:
    assert _fetched_again(two_tasks) == ["fingerprint"]
    more = "1\tIt is a warm film.\n"
    with (two_tasks / "data/input/dev.tsv").open("a") as file:
        file.write(more)
    assert _fetched_again(two_tasks) == ["fingerprint", FETCHED[0]]
    # Outside of the folder of inputs, and behind a link.
    with _outside(two_tasks, "dev.tsv").open("a") as file:
        file.write(more)
    flip_byte(_outside(two_tasks, "encoder/model.safetensors"))
    assert {*_fetched_again(two_tasks)} == {"fingerprint", "fetch_models", FETCHED[1]}
    # A named pipe is not waited for.
    assert (two_tasks / "data/input/pipe").is_fifo()
    os.mkfifo(_outside(two_tasks, "encoder/pipe"))
    assert _fetched_again(two_tasks) == ["fingerprint"]


@pytest.fixture
def in_git(new_workspace: Callable[[Path], Workspace], tmp_path: Path) -> Workspace:
    """Return a workspace whose files are committed, less those of the user."""
    workspace = new_workspace(tmp_path / "workspace")
    for key, value in {"user.name": "Someone", "user.email": "someone@example.com"}.items():
        workspace.command("git", "config", key, value).sound()
    workspace.command("git", "add", ".").sound()
    workspace.command("git", "commit", "--quiet", "--message", "first").sound()
    assert workspace.command("git", "ls-files", "data").sound().text == ""
    return workspace


@pytest.mark.slow
def test_a_queued_experiment_has_the_files_that_git_does_not_track(in_git: Workspace) -> None:
    # One of them is in a folder that git tracks, for one file of `dvc add`.
    folder, files = in_git / "data/input/added", {"dev": "added/dev.tsv"}
    folder.mkdir()
    (in_git / "data/input/dev.tsv").rename(folder / "dev.tsv")
    in_git.params(lambda values: values["tasks"][TASK]["source"]["files"].update(files))
    in_git.dvc("add", "data/input/added/dev.tsv").sound()
    in_git.command("git", "add", ".").sound()
    in_git.command("git", "commit", "--quiet", "--message", "second").sound()
    in_git.dvc("exp", "run", "--queue", "--set-param", "seeds=[3]", FETCHED[0], "fetch_models").sound()
    in_git.dvc("queue", "start").sound()
    end, status = time.monotonic() + 120, ""
    while not re.search("Success|Failed", status) and time.monotonic() < end:
        status = in_git.dvc("queue", "status").sound().text
    in_git.dvc("queue", "stop").sound()
    assert "Success" in status


def test_inputs_can_be_added_to_dvc(in_git: Workspace) -> None:
    inputs = in_git / "data/input"
    (inputs / "folder").mkdir()
    (inputs / "train.tsv").rename(inputs / "folder/train.tsv")
    for path in ("dev.tsv", "folder/train.tsv"):
        in_git.dvc("add", f"data/input/{path}").sound()
    in_git.command("git", "add", ".").sound()
    added = in_git.command("git", "ls-files", "data").sound().text.split()
    assert added == ["data/input/dev.tsv.dvc", "data/input/folder/train.tsv.dvc"]
