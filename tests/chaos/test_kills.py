"""Runs that are killed at random moments and started again."""

import os
import random
import signal
import time
from collections.abc import Callable

import pytest

from pipeline_lib.base.files import read_json
from pipeline_lib.base.interrupts import MESSAGE, STATUS, TERMINATED
from tests.pipeline.conftest import Finished
from tests.pipeline.workspace import Workspace

from .disturbing import assert_same, computed, killed_repro, repro, running_in

pytestmark = pytest.mark.slow

STATUSES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: STATUS, signal.SIGTERM: TERMINATED}
READY = """
import signal
# A shell's background jobs ignore it, and so would what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
import pipeline_lib.stages
print("ready", flush=True)
"""
"""From then on an interrupt is one line; before it, Python has just started."""


def test_a_run_that_is_killed_goes_on(
    finished: Finished, fresh: Callable[[str], Workspace], drawn: random.Random, rounds: range
) -> None:
    """`dvc repro` and its stage die at once, as when a machine goes down."""
    workspace = fresh("workspace")
    for _ in rounds:
        killed = killed_repro(workspace, drawn)
        assert killed.status in (0, -signal.SIGKILL)
    repro(workspace).sound()
    assert_same(workspace, finished.workspace)


@pytest.mark.parametrize("numbers", [(signal.SIGKILL,), (signal.SIGINT, signal.SIGTERM)], ids=["killed", "interrupted"])
def test_every_stage_goes_on(
    finished: Finished,
    fresh: Callable[[str], Workspace],
    drawn: random.Random,
    rounds: range,
    numbers: tuple[signal.Signals, ...],
) -> None:
    """Each stage gets a signal per round, at a moment within the time that it takes undisturbed.

    An interrupt ends it with the one line, without a traceback and without temporary files.  At the
    end `dvc repro` runs all stages again, for DVC knows nothing of runs without it, and finds all
    rows and trainings in the store: none is computed a second time.
    """
    workspace, disturbed = fresh("workspace"), 0
    for name, item in workspace.stages():
        record = read_json(finished.workspace / f"data/stages/{'@'.join((name, *item[1:]))}.json")
        for _ in rounds:
            number = drawn.choice(numbers)
            with workspace.started(name, *item, prelude=READY) as stage:
                while not stage.log.exists() or "ready" not in stage.log.read_text():
                    time.sleep(0.005)
                time.sleep(drawn.uniform(0, record["seconds"]))
                ended = stage.kill(number)
            assert ended.status in (0, STATUSES[number]), ended.text
            disturbed += ended.status != 0
            if ended.status == STATUSES[number] and number != signal.SIGKILL:
                assert ended.text.splitlines()[-1] == MESSAGE
                assert "Traceback" not in ended.text and "Exception" not in ended.text
                assert list(workspace.folder.rglob(".*.tmp")) == []
        workspace.stage(name, *item).sound()
    print(f"{disturbed} runs of stages ended by {[number.name for number in numbers]}")
    assert disturbed > len(workspace.stages()) / 2
    repro(workspace).sound()
    assert_same(workspace, finished.workspace)
    assert set(computed(workspace).values()) == {0}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_distill_run_ends_with_its_stage(
    fresh: Callable[[str], Workspace], drawn: random.Random, number: signal.Signals
) -> None:
    """`distill run` says the line, and nothing that it started runs on."""
    workspace = fresh("workspace")
    with workspace.forked("pipeline_lib.cli", "run", prelude=READY) as run:
        while not run.log.exists() or "ready" not in run.log.read_text():
            time.sleep(0.005)
        time.sleep(drawn.uniform(3, 12))
        os.kill(run.pid, number)
        ended = run.wait()
    assert ended.status == STATUSES[number]
    assert ended.text.splitlines()[-1] == MESSAGE and "Traceback" not in ended.text
    assert running_in(workspace.folder) == []
    assert list(workspace.folder.rglob(".*.tmp")) == []
