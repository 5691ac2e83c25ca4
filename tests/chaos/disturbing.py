"""What disturbs a run, and what must be the same after it."""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

from pipeline_lib.base.dvc_leftovers import clear_leftovers
from pipeline_lib.base.files import read_json
from tests.pipeline.workspace import STORE, Run, Workspace

TIMINGS = STORE / "timings"
"""Where measured speeds are kept."""
HOLD_TIMES = ("stages/", "report/index.html", "report/report.json")
"""All that may differ below data/: records of when stages ran and how long they took, and the
report, which shows them in its provenance and is compared without it."""
ALWAYS = ["fingerprint:", "always", "changed"]
"""All that `dvc status` says of a finished workspace: it is the stage that digests the code."""


def kill_all_in(folder: Path) -> None:
    """Kill every process that runs in a folder, as a machine that goes down does."""
    # A process may start another meanwhile.
    while pids := running_in(folder):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def running_in(folder: Path) -> list[int]:
    """Return the processes whose current folder is this one, or below it."""
    return [int(name) for name in os.listdir("/proc") if _runs_in(name, folder.resolve())]


def _runs_in(process: str, folder: Path) -> bool:
    # Processes end meanwhile.
    with suppress(OSError):
        current = Path(f"/proc/{process}/cwd").readlink()
        return process.isdecimal() and current.is_relative_to(folder)
    return False


def killed_repro(workspace: Workspace, drawn: random.Random) -> Run:
    """Start `dvc repro`, and kill it and its stage at a drawn moment: within some stages' time.

    :returns: the run, which may have finished before.
    """
    clear_leftovers(workspace.folder)
    wanted = _stages_done(workspace) + drawn.randrange(5)
    with workspace.forked("dvc", "repro") as run:
        while _stages_done(workspace) < wanted and running_in(workspace.folder):
            time.sleep(0.02)
        time.sleep(drawn.uniform(0, 4))
        kill_all_in(workspace.folder)
        killed = run.wait()
    print(f"killed with {_stages_done(workspace)} stages done, status {killed.status}")
    return killed


def _stages_done(workspace: Workspace) -> int:
    return len([*(workspace / "data/stages").glob("*.json")])


def repro(workspace: Workspace) -> Run:
    """Run `dvc repro` to its end, after what killed processes left of DVC's files is mended."""
    clear_leftovers(workspace.folder)
    return workspace.dvc("repro")


def computed(workspace: Workspace) -> dict[str, int]:
    """Return how much of each kind of work the last runs of all stages computed."""
    total: dict[str, int] = {}
    for path in (workspace / "data/stages").glob("*.json"):
        for kind, counts in read_json(path)["counts"].items():
            total[kind] = total.get(kind, 0) + counts["computed"]
    return total


def assert_same(workspace: Workspace, other: Workspace) -> None:
    """Fail unless a workspace that was disturbed is up to date and has the other's bytes."""
    assert_same_bytes(workspace, other)
    assert workspace.dvc("status").sound().text.split() == ALWAYS


def assert_same_bytes(workspace: Workspace, other: Workspace) -> None:
    """Fail unless all files of data/ and all scores are the same, and none is damaged."""
    files, others = (_files(one) for one in (workspace, other))
    assert files.keys() == others.keys()
    differ = [name for name in files if files[name] != others[name]]
    assert not differ, differ
    assert workspace.report()[:2] == other.report()[:2]
    for name in ("metrics.json", "summary.json"):
        assert (workspace / name).read_bytes() == (other / name).read_bytes()
    assert "FAULT" not in workspace.distill("verify").sound().text


def _files(workspace: Workspace) -> dict[str, str]:
    digests = workspace.digests("data")
    return {name: digest for name, digest in digests.items() if not name.startswith(HOLD_TIMES)}
