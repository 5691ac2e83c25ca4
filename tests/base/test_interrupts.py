"""Ctrl-C and SIGTERM end a stage at once, with one line, whatever it is doing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_lib.base.interrupts import MESSAGE, STATUS, TERMINATED

STAGE = """
import sys, time
from pathlib import Path
import pipeline_lib.stages
from pipeline_lib.base.entry import run_stage
from pipeline_lib.shards.engine.local import LocalEngine

def sleep(job, report):
    Path(job).touch()
    time.sleep(60)

def main() -> None:
    workers = {workers}
    if workers == 0:
        for job in LocalEngine(2).stream(stream, ["a", "b", "c"]):
            pass
    list(LocalEngine(workers).run(sleep, ["a", "b", "c"]))

def stream(job):
    sleep(job, None)

if __name__ == "__main__":
    run_stage(main)
"""
IMPORTING = """
import pipeline_lib.stages
from pathlib import Path
Path("a").touch()
import time
time.sleep(60)
"""


def start_stage(folder: Path, script: str) -> subprocess.Popen:
    """Run a script in ``folder``, in a process group that signals can be sent to."""
    (folder / "stage.py").write_text(script)
    path = [str(Path(__file__).parents[2]), *sys.path]
    return subprocess.Popen(
        [sys.executable, "stage.py"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background jobs ignore it, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.mark.parametrize(
    ("script", "number", "status"),
    [
        (STAGE.format(workers=0), signal.SIGTERM, TERMINATED),
        (STAGE.format(workers=1), signal.SIGINT, STATUS),
        (STAGE.format(workers=2), signal.SIGINT, STATUS),
        (STAGE.format(workers=2), signal.SIGTERM, TERMINATED),
        (IMPORTING, signal.SIGINT, STATUS),
    ],
    ids=["stream", "one", "two", "two terminated", "importing"],
)
def test_one_line_at_once(tmp_path: Path, script: str, number: int, status: int) -> None:
    process = start_stage(tmp_path, script)
    try:
        while not (tmp_path / "a").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        start = time.monotonic()
        # As a terminal does: to all processes of the group.
        os.killpg(process.pid, number)
        _, printed = process.communicate(timeout=20)
        # The jobs take a minute; how much less this takes, the machine's load decides.
        assert time.monotonic() - start < 15
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert printed == f"{MESSAGE}\n"
    assert process.returncode == status


def test_an_interrupt_before_the_stage(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline_lib.base import entry

    def interrupted(main: Callable[..., None]) -> Callable[..., None]:
        def run() -> None:
            raise KeyboardInterrupt

        return run

    # As Typer reads the options, say.
    monkeypatch.setattr(entry, "_interruptible", interrupted)
    monkeypatch.setattr(sys, "argv", ["stage"])
    with pytest.raises(SystemExit) as end:
        entry.run_stage(lambda: None)
    assert end.value.code == STATUS and capsys.readouterr().err == f"{MESSAGE}\n"


def test_memory_that_runs_out_in_torch_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    from pipeline_lib.base.entry import guard

    with pytest.raises(SystemExit):
        guard(lambda: torch.empty(1 << 60, dtype=torch.uint8))
    printed = capsys.readouterr().err
    assert "out of memory (" in printed and "Lower `batch_size`" in printed
    assert printed.count("\n") == 1

    def fail() -> None:
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        guard(fail)


MASKED = """
import pipeline_lib.stages
import os, signal
from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.errors import PotstillError

def main() -> None:
    try:
        os.kill(os.getpid(), signal.SIG{number})
    finally:
        raise {error}

if __name__ == "__main__":
    run_stage(main)
"""


UNFINISHED = """
import pipeline_lib.stages
from pathlib import Path
from pipeline_lib.base import files
from pipeline_lib.base.entry import run_stage

def interrupted(path):
    raise KeyboardInterrupt

def main() -> None:
    with files.temporary_beside(Path("folder")) as folder:
        folder.mkdir()
        files.write_json(folder / "a.json", {})
        files.delete_unfinished = interrupted
        files.write_json(Path("whole.json"), {})

if __name__ == "__main__":
    run_stage(main)
"""


BEFORE_THE_CALL = """
import pipeline_lib.stages
import os, signal, sys, typer
from pipeline_lib.base.entry import run_stage

def called(self):
    # Typer replaces the hook, too.
    sys.excepthook = sys.__excepthook__
    os.kill(os.getpid(), signal.SIGTERM)

typer.Typer.__call__ = called
run_stage(lambda: None)
"""


@pytest.mark.parametrize(
    ("script", "status"),
    [
        # As torch raises one if a block that changes its mode is left half-way.
        (MASKED.format(error="PotstillError('a fault')", number="INT"), STATUS),
        (MASKED.format(error="AssertionError", number="TERM"), TERMINATED),
        (UNFINISHED, STATUS),
        (BEFORE_THE_CALL, TERMINATED),
    ],
    ids=["masked", "masked by an assertion", "after the stage", "before the call"],
)
def test_an_interrupt_around_the_stage_is_one_line(tmp_path: Path, script: str, status: int) -> None:
    process = start_stage(tmp_path, script)
    _, printed = process.communicate(timeout=60)
    assert (process.returncode, printed) == (status, f"{MESSAGE}\n")
    assert {path.name for path in tmp_path.iterdir()} <= {"stage.py", "whole.json"}
