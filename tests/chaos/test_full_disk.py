"""A disk that fills, wherever it does, is one error; with room again, the run goes on."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline.conftest import Finished
from tests.pipeline.workspace import Workspace

from .disturbing import assert_same, computed, repro

pytestmark = pytest.mark.slow

FULL_DISK = """
import errno, itertools, os
fsync, written = os.fsync, itertools.count()
def full(file):
    path = os.readlink(f"/proc/self/fd/{{file}}")
    if path.startswith({folder!r}) and next(written) >= {files}:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return fsync(file)
os.fsync = full
"""
"""There is room for so many files in a folder and no more: each is flushed once it is written."""
FULL_TEMPORARY = """
import ctypes, os, tempfile
def checked(status):
    if status:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
libc, user, group = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()
checked(libc.unshare(0x10000000 | 0x00020000))
maps = dict(setgroups="deny", uid_map=f"0 {{user}} 1", gid_map=f"0 {{group}} 1")
for name, line in maps.items():
    with open(f"/proc/self/{{name}}", "w") as file:
        file.write(line)
checked(libc.mount(b"none", {folder!r}.encode(), b"tmpfs", 0, b"size=4k"))
os.environ["TMPDIR"] = tempfile.tempdir = {folder!r}
"""
"""A temporary folder with room for one page, in a name space in which this process may mount it."""
FULL = "No space left on device"


@pytest.mark.parametrize("folder", [".potstill", "data"], ids=["store", "data"])
def test_a_full_folder(
    finished: Finished, fresh: Callable[[str], Workspace], drawn: random.Random, rounds: range, folder: str
) -> None:
    """Each stage has room for a drawn number of files, in each round, and then for all.

    What the store had before an error it has after it, and in the end `dvc repro`, which runs all
    stages again, finds all rows and trainings there.
    """
    workspace, refused = fresh("workspace"), 0
    for name, item in workspace.stages():
        for _ in rounds:
            before = kept(workspace)
            full = FULL_DISK.format(folder=str(workspace / folder), files=drawn.randrange(6))
            run = workspace.stage(name, *item, prelude=full)
            if run.status:
                refused += 1
                assert f"could not be written ({FULL}). Free disk space" in run.error
            assert before <= kept(workspace)
        workspace.stage(name, *item).sound()
    # Some write little.
    assert refused > 4
    repro(workspace).sound()
    assert_same(workspace, finished.workspace)
    assert set(computed(workspace).values()) == {0}
    assert not list((workspace / ".potstill").rglob("quarantine"))


def kept(workspace: Workspace) -> set[Path]:
    """Return the finished entries of the store, and the finished models."""
    files = (workspace / ".potstill").rglob("*.json")
    return {path for path in files if not any(part.endswith(".tmp") for part in path.parts)}


def test_a_full_temporary_folder(finished: Finished, fresh: Callable[[str], Workspace], tmp_path: Path) -> None:
    """A stage that needs temporary files ends in one error; the others do not notice."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "none", str(folder)]
    if subprocess.run(["unshare", "--map-root-user", "--mount", *mount]).returncode:
        pytest.skip("this user may make no name space, and mount nothing")
    workspace, refused = fresh("workspace"), []
    for name, item in workspace.stages():
        run = workspace.stage(name, *item, prelude=FULL_TEMPORARY.format(folder=str(folder)))
        if run.status:
            refused.append(name)
            assert FULL in run.error
            workspace.stage(name, *item).sound()
    assert refused == ["measure_speed"]
    repro(workspace).sound()
    assert_same(workspace, finished.workspace)
