"""What a killed DVC leaves half-written, which would make every `dvc` command fail."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from zc.lockfile import LockFile

from pipeline_lib.base.dvc_leftovers import clear_leftovers, remove_stale_lock, restore_lock_file

STAGE = """  split@{0}:
    cmd: python -m split {0}
    deps:
    - path: data/raw/{0}
      hash: md5
      md5: 1b2cf535f27731c974343645a3985328.dir
      size: 42
      nfiles: 3
"""
WHOLE = "schema: '2.0'\nstages:\n" + STAGE.format("reviews") + STAGE.format("titles")
TORN = ["", "schema: '2.0'\nstages:\n  split@rev", WHOLE[: WHOLE.rindex("cmd") + 1], "\0" * 20]
TORN += [WHOLE.replace("    cmd:", "    com:"), "- schema"]


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / ".dvc" / "tmp" / "rwlock"
    path.parent.mkdir(parents=True)
    return path


def test_half_a_lock_of_dvc_is_removed(tmp_path: Path, lock: Path) -> None:
    assert remove_stale_lock(tmp_path) is None
    for content in ("", '{"dvc.ya'):
        lock.write_text(content)
        assert remove_stale_lock(tmp_path, wait=0) == lock and not lock.exists()
    lock.write_text('{"read": {}, "write": {}}')
    assert remove_stale_lock(tmp_path) is None and lock.exists()
    # What has ended holds no lock.
    process = subprocess.Popen([sys.executable, "-c", "", "dvc"])
    while "zombie" not in Path(f"/proc/{process.pid}/status").read_text():
        time.sleep(0.01)
    # Nobody has asked for its status yet: its number is still taken.
    lock.write_text(json.dumps({"read": {}, "write": {"a": {"pid": process.pid, "cmd": "dvc"}}}))
    assert remove_stale_lock(tmp_path, wait=0) == lock
    process.wait()


@pytest.mark.parametrize(
    ("command", "stale"),
    [(["dvc", "repro"], False), (["another"], True), (None, True)],
    ids=["of DVC", "of another process with its number", "of none"],
)
def test_a_lock_is_removed_if_no_dvc_has_it(tmp_path: Path, lock: Path, command: list[str] | None, stale: bool) -> None:
    code = [sys.executable, "-c", "input()", *(command or [])]
    process = subprocess.Popen(code, stdin=subprocess.PIPE)
    if command is None:
        process.kill()
        process.wait()
    holder = {"pid": process.pid, "cmd": "dvc repro"}
    # Of two readers and a writer, each in DVC's own form.
    parts = {"read": {"data/a": [holder, holder]}, "write": {"data/b": holder, "data/c": {}}}
    lock.write_text(json.dumps(parts))
    assert remove_stale_lock(tmp_path, wait=0) == (lock if stale else None)
    assert lock.exists() != stale
    process.kill()
    process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".dvc" / "tmp").mkdir(parents=True)
    (tmp_path / "dvc.lock").write_text(WHOLE)
    for words in (
        ["init", "--quiet"],
        ["add", "dvc.lock"],
        ["-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "--quiet", "--message", "run"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "dvc.lock").write_text(WHOLE + STAGE.format("new"))
    return tmp_path


def test_lock_files_that_stay(folder: Path) -> None:
    assert restore_lock_file(folder) is None and clear_leftovers(folder) == []
    assert (folder / "dvc.lock").read_text() == WHOLE + STAGE.format("new")
    (folder / "dvc.lock").unlink()
    assert restore_lock_file(folder) is None and not (folder / "dvc.lock").exists()
    conflict = WHOLE.replace("      size: 42\n", "<<<<<<< HEAD\n      size: 42\n=======\n", 1)
    (folder / "dvc.lock").write_text(conflict)
    assert restore_lock_file(folder) is None
    assert (folder / "dvc.lock").read_text() == conflict
    # A lock file that dvc is writing is left to it.
    (folder / "dvc.lock").write_text("")
    held = LockFile(str(folder / ".dvc" / "tmp" / "lock"))
    assert restore_lock_file(folder) is None
    held.close()
    assert restore_lock_file(folder) == folder / "dvc.lock"
    # In a fresh clone there is no folder of DVC's locks.
    (folder / "dvc.lock").write_text("")
    shutil.rmtree(folder / ".dvc" / "tmp")
    assert restore_lock_file(folder) == folder / "dvc.lock"
    assert (folder / "dvc.lock").read_text() == WHOLE


def test_the_committed_lock_file_replaces_half_of_one(folder: Path) -> None:
    path = folder / "dvc.lock"
    for truncated in TORN:
        path.write_text(truncated)
        [line] = clear_leftovers(folder)
        assert "dvc.lock: half-written" in line and line.endswith("the committed version is back.")
        assert path.read_text() == WHOLE


@pytest.mark.parametrize("git", ["none", "no program", "truncated too"])
def test_half_a_lock_file_is_deleted_if_none_is_whole(folder: Path, git: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "dvc.lock"
    path.write_text("schema: '2")
    if git == "none":
        (folder / ".git").rename(folder / "elsewhere")
    elif git == "no program":
        monkeypatch.setenv("PATH", "")
    else:
        author = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
        commit = ["git", *author, "commit", "--quiet", "--all", "--message", "truncated"]
        subprocess.run(commit, cwd=folder, check=True)
    [line] = clear_leftovers(folder)
    assert line.endswith("a process that was killed; removed.") and not path.exists()
