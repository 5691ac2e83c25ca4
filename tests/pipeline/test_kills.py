"""Every long stage, killed in the middle and started again, gives the undisturbed bytes."""

import re

import pytest

from .conftest import Finished
from .workspace import BLOCKS, BOTH, OUTPUTS, SHARDS, STORE, TASK, Run, Workspace

CHECKPOINTS = ".potstill/checkpoints"
SLOW_TRAINING = """
import time
from pipeline_lib.training import loop as training
training.CHECKPOINT_SECONDS = 0.0
step = training._step
def slow(*arguments):
    time.sleep(0.015)
    return step(*arguments)
training._step = slow
"""
TELL_RESUMED = """
from pipeline_lib.training import loop as training
remaining = training._remaining
def told(batches, done, per_epoch, total):
    print(f"went on from step {done} of {total}", flush=True)
    return remaining(batches, done, per_epoch, total)
training._remaining = told
"""


def slowed(module: str, kind: str, method: str) -> str:
    """Return the prelude that has a pass say that it works on rows, and wait."""
    return f"""
import time
from {module} import {kind} as Pass
method = Pass.{method}
def slow(self, rows):
    print("at work on rows", flush=True)
    time.sleep(0.2)
    return method(self, rows)
Pass.{method} = slow
"""


SLOW_TEACHER = slowed("pipeline_lib.outputs.teacher_pass", "LogitPass", "outputs")
SLOW_TAGGER = slowed("pipeline_lib.corpora.tasks.tagging", "TaggingPass", "compute")


def _resumed(run: Run) -> list[tuple[int, int]]:
    found = re.findall(r"went on from step (\d+) of (\d+)", run.sound().text)
    return [(int(step), int(steps)) for step, steps in found]


def test_precompute_goes_on_with_the_missing_shards(finished: Finished, workspace: Workspace) -> None:
    workspace.forget(OUTPUTS, STORE / "logits")
    with workspace.started("precompute", prelude=SLOW_TEACHER) as stage:
        stage.kill_when(lambda: len(workspace.entries("logits")) >= 2)
    done = len(workspace.entries("logits"))
    assert 2 <= done < SHARDS
    assert not (workspace / OUTPUTS / "manifest.json").exists()
    again = workspace.stage("precompute").sound()
    assert again.tally == (SHARDS - done, BLOCKS + done)
    assert workspace.digests(OUTPUTS) == finished.workspace.digests(OUTPUTS)


@pytest.mark.parametrize("suffix", [".json", ".arrow"])
def test_an_entry_that_a_kill_left_half_written_is_computed_again(
    finished: Finished, workspace: Workspace, suffix: str
) -> None:
    lost = next((workspace / STORE / "logits").glob(f"*/{_key(workspace)}{suffix}"))
    lost.unlink()
    workspace.forget(OUTPUTS)
    assert workspace.stage("precompute").sound().tally == (1, BOTH - 1)
    assert workspace.digests(OUTPUTS) == finished.workspace.digests(OUTPUTS)


def _key(workspace: Workspace) -> str:
    from pipeline_lib.shards.shard_sets import read_manifest

    digest = read_manifest(workspace / OUTPUTS).shards[-1].sha256
    records = (workspace / STORE / "logits").glob("*/*.json")
    return next(path.stem for path in records if digest in path.read_text())


def test_prepare_goes_on_with_the_untagged_blocks(finished: Finished, workspace: Workspace) -> None:
    folder = f"data/tasks/{TASK}"
    workspace.forget(folder, STORE / "tags")
    with workspace.started("prepare", prelude=SLOW_TAGGER) as stage:
        stage.kill_when(lambda: len(workspace.entries("tags")) >= 2)
    done = len(workspace.entries("tags"))
    again = workspace.stage("prepare", prelude=SLOW_TAGGER).sound()
    assert again.text.count("at work on rows") == BLOCKS - done
    assert 2 <= done < BLOCKS
    assert workspace.digests(folder) == finished.workspace.digests(folder)


def test_finetune_teacher_goes_on_from_its_checkpoint(finished: Finished, workspace: Workspace) -> None:
    folder = f"data/teachers/{TASK}"
    workspace.forget(folder, ".potstill/teachers")
    with workspace.started("finetune_teacher", prelude=SLOW_TRAINING) as stage:
        stage.kill_when(lambda: _written(workspace, "teachers-*.safetensors", after=8))
    again = workspace.stage("finetune_teacher", prelude=TELL_RESUMED)
    [(step, steps)] = _resumed(again)
    assert 0 < step < steps
    assert workspace.digests(folder) == finished.workspace.digests(folder)
    assert list((workspace / CHECKPOINTS).glob("teachers-*")) == []


@pytest.mark.slow
def test_train_goes_on_from_its_checkpoint_seed_by_seed(finished: Finished, workspace: Workspace) -> None:
    folder = workspace.only("bilstm_kd_ts")
    with workspace.started("train", prelude=SLOW_TRAINING) as stage:
        stage.kill_when(lambda: _written(workspace, "students-*.safetensors", after=25))
    assert workspace.trained() == set()
    slow = SLOW_TRAINING + TELL_RESUMED
    with workspace.started("train", prelude=slow) as stage:
        killed = stage.kill_when(lambda: _second_seed_runs(workspace))
    first = re.findall(r"went on from step (\d+)", killed.text)
    assert int(first[0]) >= 25
    assert first[1:] == ["0"]
    # The first seed is finished now: only the second goes on.
    [(step, steps)] = _resumed(workspace.stage("train", prelude=TELL_RESUMED))
    assert 25 <= step < steps
    assert workspace.digests(folder) == finished.workspace.digests(folder)


def test_a_student_killed_before_its_checkpoint_is_deleted_is_not_trained_again(
    finished: Finished, workspace: Workspace
) -> None:
    folder = workspace.only("bilstm")
    # The process ends itself after the student has its seal, before the checkpoint goes.
    ends_itself = """
import os
from pathlib import Path
unlink = Path.unlink
def die(self, missing_ok=False):
    if self.name.startswith("students-"):
        os.kill(os.getpid(), 9)
    return unlink(self, missing_ok)
Path.unlink = die
"""
    assert workspace.stage("train", prelude=ends_itself).status == -9
    assert len(workspace.trained()) == 1
    again = workspace.stage("train", prelude=TELL_RESUMED)
    # Only the second seed is trained, and from its start.
    assert [step for step, _ in _resumed(again)] == [0]
    assert workspace.digests(folder) == finished.workspace.digests(folder)


def _second_seed_runs(workspace: Workspace) -> bool:
    """Return whether one seed is finished and its checkpoint gone, and the other is on its way."""
    if not (finished := workspace.trained()):
        return False
    checkpoints = {path.name for path in (workspace / CHECKPOINTS).glob("students-*.safetensors")}
    alone = not any(name.startswith(f"students-{key}") for key in finished for name in checkpoints)
    return alone and _written(workspace, "students-*.safetensors", after=25)


def _written(workspace: Workspace, pattern: str, after: int) -> bool:
    from safetensors import safe_open

    for path in (workspace / CHECKPOINTS).glob(pattern):
        # Each is replaced as a whole, so it can always be read; or it has just been deleted.
        try:
            with safe_open(path, "numpy") as file:
                found = re.search(r'"step": (\d+)', file.metadata()["progress"])
        except FileNotFoundError:
            continue
        if found and int(found[1]) >= after:
            return True
    return False
