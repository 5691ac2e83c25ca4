"""How much work is done twice because of kills: what was in flight, and no more."""

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.pipeline.workspace import TASK, Workspace

from .disturbing import TIMINGS, assert_same_bytes

pytestmark = pytest.mark.slow

LOG = "work.log"
RECORD = f"""
import os
from pipeline_lib.shards.engine import passes
from pipeline_lib.training import loop
log = os.open({LOG!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def tell(*words):
    os.write(log, (" ".join(map(str, words)) + "\\n").encode())
compute, fit, remaining, training = passes._compute, loop.fit, loop._remaining, []
def told_compute(job, report):
    key = job[0].kind, job[0].key(job[1].digest)
    tell("shard", *key)
    answer = compute(job, report)
    tell("rows", *key, answer.rows)
    return answer
def told_fit(*arguments, **named):
    training[:] = [next(a.stem for a in [*arguments, *named.values()] if hasattr(a, "stem"))]
    return fit(*arguments, **named)
def told_remaining(*arguments):
    for step, rows in remaining(*arguments):
        tell("step", training[0], step)
        yield step, rows
passes._compute, loop.fit, loop._remaining = told_compute, told_fit, told_remaining
loop.CHECKPOINT_SECONDS = 0.0
"""
"""Tells of each shard and each step as it begins.  A checkpoint follows each step: those of a real
training, of hours, are a minute apart, and here a training takes a second."""
BLOCKS, KILLS, MOST = 30, 4, 0.05
WORKING = ("prepare", "augment", "finetune_teacher", "precompute", "train")
"""The stages that compute rows or train; the others take seconds in runs of hours."""


@dataclass
class Work:
    """What was begun: shards, each once per time, their rows, and training steps likewise."""

    shards: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, workspace: Workspace) -> "Work":
        """Read what the stages told."""
        work, path = cls(), workspace / LOG
        for line in path.read_text().splitlines() if path.exists() else []:
            kind, _, what = line.partition(" ")
            if kind == "rows":
                key, _, rows = what.rpartition(" ")
                work.rows[key] = int(rows)
            else:
                (work.shards if kind == "shard" else work.steps).append(what)
        return work

    @property
    def begun_rows(self) -> int:
        """Rows of all shards that were begun: of one that was killed, all count as computed."""
        return sum(self.rows[key] for key in self.shards)


def test_little_is_computed_twice(
    new_workspace: Callable[[Any], Workspace], tmp_path: Any, drawn: random.Random, rounds: range
) -> None:
    """Each round is a run of four kills, in the middle of the work of four stages.

    A kill repeats at most the shard in flight, or the step since the checkpoint.  Of a shard that
    was begun all rows count, so the share is an upper bound.  The workspace has more and smaller
    shards than that of the other tests, as real ones have: of nine shards, one is a ninth.
    """
    undisturbed = workspace_of_many_shards(new_workspace, tmp_path / "undisturbed")
    lines = {}
    for name, item in undisturbed.stages():
        before = _lines(undisturbed)
        undisturbed.stage(name, *item, prelude=RECORD).sound()
        lines[name] = _lines(undisturbed) - before
    alone = Work.of(undisturbed)
    assert len(set(alone.shards)) == len(alone.shards) > 5 * BLOCKS
    assert len(set(alone.steps)) == len(alone.steps) > 500
    for number in rounds:
        workspace = workspace_of_many_shards(new_workspace, tmp_path / str(number))
        undisturbed.lend(TIMINGS, workspace)
        victims = drawn.sample(WORKING, KILLS)
        kills = 0
        for name, item in workspace.stages():
            if name in victims:
                kills += _kill_at(workspace, name, item, drawn.randrange(1, lines[name]))
            workspace.stage(name, *item, prelude=RECORD).sound()
        assert_same_bytes(workspace, undisturbed)
        work = Work.of(workspace)
        assert set(work.shards) == set(alone.shards) and set(work.steps) == set(alone.steps)
        twice = len(work.shards) - len(alone.shards), len(work.steps) - len(alone.steps)
        rows = work.begun_rows - alone.begun_rows
        print(
            f"round {number}: {kills} kills; twice: {rows} of {alone.begun_rows} rows "
            f"({twice[0]} of {len(alone.shards)} shards), {twice[1]} of {len(alone.steps)} steps"
        )
        assert sum(twice) <= kills
        assert rows < MOST * alone.begun_rows
        assert twice[1] < MOST * len(alone.steps)


def workspace_of_many_shards(new_workspace: Callable[[Any], Workspace], folder: Any) -> Workspace:
    workspace = new_workspace(folder)
    workspace.params(lambda params: params["tasks"][TASK].update(blocks=BLOCKS))
    return workspace


def _lines(workspace: Workspace) -> int:
    path = workspace / LOG
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _kill_at(workspace: Workspace, name: str, item: tuple[str, ...], line: int) -> int:
    """Kill a stage when it has told so many lines; return 0 if it had ended before, else 1."""
    end = _lines(workspace) + line
    with workspace.started(name, *item, prelude=RECORD) as stage:
        while _lines(workspace) < end:
            time.sleep(0.001)
        return int(stage.kill().status == -signal.SIGKILL)
