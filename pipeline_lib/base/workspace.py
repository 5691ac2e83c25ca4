"""Workspaces: folders in which `dvc repro` runs, and the files of one that travel with the library.

A workspace holds the pipeline, parameters, and the user's files, but no code: its stages are
modules of the installed library.
"""

import json
import shutil
import subprocess
import sys
import time
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import psutil

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import copy_file

SHIPPED = Path(__file__).parents[1] / "shipped"
"""What travels with the library; in the repository, most of it are links to files at its top."""
DVC = (sys.executable, "-m", "dvc")
PIPELINE = Path("dvc.yaml")
FILES = {
    PIPELINE: "pipeline.yaml",
    Path(".gitignore"): "gitignore",
    Path(".dvcignore"): "dvcignore",
    Path("data/README.md"): "data.md",
    Path("data/input/README.md"): "input.md",
}
"""What is written into a workspace, and what it is called in the library."""
SETTINGS = {"analytics": "false", "check_update": "false"}
"""DVC's own defaults send statistics and look for updates."""


def shipped(name: str) -> Path:
    """Return a file or folder that travels with the library, such as the pipeline."""
    return SHIPPED / name


def shipped_profiles() -> list[Path]:
    """Return the profiles that travel with the library."""
    return sorted(shipped("profiles").glob("*.yaml"))


def make_workspace(folder: Path, scm: bool = True, force: bool = False) -> list[Path]:
    """Write what is missing of a workspace into ``folder``, with `git init` and `dvc init`.

    :param scm: whether to track it by git; it need not be where git is not installed.
    :param force: whether to replace a dvc.yaml that is another.
    :returns: the files that were written.
    :raises DistilleryError: if there is another dvc.yaml, or git or DVC refuse.
    """
    check_pipeline(folder, force)
    written = []
    for name, source in FILES.items():
        replaced = force and name == PIPELINE
        if replaced or not (folder / name).exists():
            copy_file(shipped(source), folder / name)
            written.append(name)
    _init_dvc(folder, scm and shutil.which("git") is not None)
    return written


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
        holders = {holder["pid"] for part in lock.values() for holder in _holders(part)}
        if not holders or any(map(_runs_dvc, holders)):
            return None
        break
    path.unlink(missing_ok=True)
    return path


def _holders(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the processes that read or write paths; one at most writes a path."""
    values = [value if isinstance(value, list) else [value] for value in part.values()]
    return [holder for holders in values for holder in holders if holder]


def _runs_dvc(number: int) -> bool:
    """Whether there is a process of this number that is DVC, and has not ended."""
    try:
        process = psutil.Process(number)
        is_zombie = process.status() == psutil.STATUS_ZOMBIE
        return not is_zombie and any("dvc" in part for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def check_pipeline(folder: Path, force: bool = False) -> None:
    """Check that a folder's dvc.yaml, if there is one, is this version's.

    :raises DistilleryError: if it is another, which would not be overwritten.
    """
    path = folder / PIPELINE
    if path.exists() and not force and path.read_bytes() != shipped("pipeline.yaml").read_bytes():
        raise DistilleryError(
            f"{path}: not the pipeline of this version. If an older version wrote it, replace it "
            "with `distill new --force`; if it is another project's, use another folder."
        )


def _init_dvc(folder: Path, scm: bool) -> None:
    if (folder / ".dvc").is_dir():
        return
    options = ["--no-scm"]
    if scm:
        top = _run(folder, "git", "rev-parse", "--show-toplevel")
        options = []
        if top.returncode:
            _checked(folder, "git", "init", "--quiet")
        elif Path(top.stdout.strip()) != folder.resolve():
            options = ["--subdir"]
    _checked(folder, *DVC, "init", "--quiet", *options)
    # `dvc config` takes a second for each key.
    config, path = ConfigParser(), folder / ".dvc" / "config"
    config.read(path, encoding="utf-8")
    config.read_dict({"core": SETTINGS})
    with path.open("w", encoding="utf-8") as file:
        config.write(file)


def _checked(folder: Path, *command: str) -> None:
    done = _run(folder, *command)
    if done.returncode:
        reason = (done.stderr or done.stdout).strip().splitlines() or ["no reason was printed"]
        name = " ".join(command).replace(" ".join(DVC), "dvc")
        raise DistilleryError(
            f"{folder}: `{name}` failed: {reason[0]} Run it by hand, or use --no-scm."
        )


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)
