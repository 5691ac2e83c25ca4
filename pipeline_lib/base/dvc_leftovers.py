"""What a killed DVC leaves half-written, so that every `dvc` command fails: its own lock, and dvc.lock."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from pipeline_lib.base.files import atomic_path

LOCK_FILE = Path("dvc.lock")


def clear_leftovers(folder: Path, wait: float = 1.0) -> list[str]:
    """Mend what killed processes left of DVC's files; return a line for each."""
    lines = []
    if path := remove_stale_lock(folder, wait):
        lines.append(f"{path}: removed; a process that was killed left it.")
    if path := restore_lock_file(folder):
        became = "the committed version is back" if path.exists() else "removed"
        lines.append(f"{path}: half-written by a process that was killed; {became}.")
    return lines


def remove_stale_lock(folder: Path, wait: float = 1.0) -> Path | None:
    """Remove DVC's lock file if only killed processes left it; return its path then.

    DVC rewrites the file in place, and with half of it, every command fails.  It also takes any
    process with the same number for the one that was killed.

    :param wait: seconds that a running process has to finish writing it.
    """
    path = folder / ".dvc" / "tmp" / "rwlock"
    for pause in (wait, 0.0):
        try:
            lock = json.loads(path.read_bytes())
        except OSError:
            return None
        except ValueError:
            time.sleep(pause)
            continue
        holders = {holder["pid"] for paths in lock.values() for holder in _holders(paths)}
        if not holders or any(map(_runs_dvc, holders)):
            return None
        break
    path.unlink(missing_ok=True)
    return path


def _holders(paths: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the processes that read or write paths; one at most writes a path."""
    values = [value if isinstance(value, list) else [value] for value in paths.values()]
    return [holder for holders in values for holder in holders if holder]


def _runs_dvc(number: int) -> bool:
    """Whether there is a process of this number that is DVC, and has not ended."""
    try:
        process = psutil.Process(number)
        return process.status() != psutil.STATUS_ZOMBIE and "dvc" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def restore_lock_file(folder: Path) -> Path | None:
    """Put back the committed dvc.lock, or delete it, if DVC cannot read it; return its path then.

    DVC empties the file before it writes it anew.  What has finished since it was committed is in DVC's cache, which
    knows it without the file.
    """
    path = folder / LOCK_FILE
    if not path.exists() or not _is_torn(path.read_bytes()):
        return None
    with _dvc_is_idle(folder) as idle:
        if not idle or not _is_torn(path.read_bytes()):
            return None
        if _is_lock_file(committed := _committed(folder)):
            with atomic_path(path) as temporary:
                temporary.write_bytes(committed)
        else:
            path.unlink()
    return path


def _committed(folder: Path) -> bytes:
    """Return the last committed dvc.lock; nothing without git, or if it is in no commit."""
    command = ["git", "show", f"HEAD:./{LOCK_FILE}"]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True).stdout
    except FileNotFoundError:
        return b""


def _is_torn(content: bytes) -> bool:
    # A conflict of a merge is the user's to resolve.
    return not _is_lock_file(content) and b"<<<<<<< " not in content


def _is_lock_file(content: bytes) -> bool:
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA
    from ruamel.yaml import YAML, YAMLError
    from voluptuous import Invalid

    try:
        COMPILED_LOCKFILE_SCHEMA(YAML(typ="safe").load(content.decode()))
    except (UnicodeDecodeError, YAMLError, Invalid):
        return False
    return True


@contextmanager
def _dvc_is_idle(folder: Path) -> Iterator[bool]:
    """Yield whether no DVC is writing here, and let none write until the block ends."""
    from zc.lockfile import LockError, LockFile

    path = folder / ".dvc" / "tmp" / "lock"
    if not path.parent.is_dir():
        # DVC makes it when it first runs: it has not in a fresh clone.
        yield True
        return
    try:
        lock = LockFile(str(path))
    except LockError:
        yield False
        return
    try:
        yield True
    finally:
        lock.close()
