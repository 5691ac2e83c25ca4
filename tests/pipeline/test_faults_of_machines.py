"""Whole runs, killed at random, on a full disk, and beside each other, end in the same bytes."""

import os
import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from .conftest import Finished
from .workspace import Workspace

pytestmark = pytest.mark.slow

COMPUTED = ("tasks", "lexicons", "transfer", "teachers", "outputs", "vocabularies", "students")
"""Folders of data: their bytes are the same on one machine, whatever happens to it."""
KILLS = int(os.environ.get("KILLS", "4"))
"""Kills of each workspace."""
FULL_DISK = """
import errno, itertools, os
fsync, written = os.fsync, itertools.count()
def full(file):
    if next(written) >= {files}:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return fsync(file)
os.fsync = full
"""
"""There is room for so many files and no more: each is flushed once it is written."""


def assert_same(workspace: Workspace, finished: Finished) -> None:
    for name in COMPUTED:
        assert workspace.digests(f"data/{name}") == finished.workspace.digests(f"data/{name}")
    verified = workspace.distill("verify").sound().text
    assert "FAULT" not in verified
    assert not list((workspace / ".potstill").rglob("quarantine"))


@pytest.mark.parametrize("seed", range(int(os.environ.get("WORKSPACES", "1"))))
def test_a_run_killed_at_random(
    finished: Finished, new_workspace: Callable[[Path], Workspace], tmp_path: Path, seed: int
) -> None:
    workspace, moments = new_workspace(tmp_path / "workspace"), random.Random(seed)
    for _ in range(KILLS):
        with workspace.forked("pipeline_lib.cli", "run") as run:
            time.sleep(moments.uniform(2, 12))
            kill_all_in(workspace.folder)
            # A quick machine may have finished before.
            assert run.wait().status in (0, -signal.SIGKILL)
    workspace.distill("run").sound()
    assert_same(workspace, finished)


def kill_all_in(folder: Path) -> None:
    """Kill every process that runs in a folder, as a machine that goes down does."""
    # A process may start another meanwhile.
    while pids := [int(name) for name in os.listdir("/proc") if _runs_in(name, folder.resolve())]:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _runs_in(process: str, folder: Path) -> bool:
    # Processes end meanwhile.
    with suppress(OSError):
        current = Path(f"/proc/{process}/cwd").readlink()
        return process.isdecimal() and current.is_relative_to(folder)
    return False


@pytest.mark.parametrize("files", [0, 3])
def test_a_full_disk_is_one_error_in_every_stage(
    finished: Finished, new_workspace: Callable[[Path], Workspace], tmp_path: Path, files: int
) -> None:
    workspace, refused = new_workspace(tmp_path / "workspace"), 0
    for name, item in workspace.stages():
        run = workspace.stage(name, *item, prelude=FULL_DISK.format(files=files))
        if run.status:
            refused += 1
            assert "could not be written (No space left on device). Free disk space" in run.error
        workspace.stage(name, *item).sound()
    # Some write little.
    assert refused > 4
    assert_same(workspace, finished)


def test_two_workspaces_run_beside_each_other_on_one_store(
    finished: Finished, new_workspace: Callable[[Path], Workspace], tmp_path: Path
) -> None:
    (tmp_path / ".potstill").mkdir()
    workspaces = [new_workspace(tmp_path / name) for name in ("one", "two")]
    with ThreadPoolExecutor() as threads:
        for run in threads.map(lambda workspace: workspace.distill("run"), workspaces):
            run.sound()
    for workspace in workspaces:
        assert_same(workspace, finished)
        assert not (workspace / ".potstill").exists()
