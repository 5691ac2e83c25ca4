"""Several processes compute the same at once, in one state folder: all end with the right bytes."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from .conftest import Finished
from .workspace import BOTH, OUTPUTS, TASK, Workspace


@pytest.mark.parametrize(
    ("stage", "folder", "kept"),
    [
        ("prepare", f"data/tasks/{TASK}", "store/tags/*/*.arrow"),
        ("precompute", str(OUTPUTS), "store/logits/*/*.arrow"),
        ("train", f"data/students/{TASK}/bilstm", "students/*/sealed.json"),
    ],
)
def test_two_clones_run_a_stage_at_once(finished: Finished, tmp_path: Path, stage: str, folder: str, kept: str) -> None:
    clones = [finished.workspace.copy(tmp_path / name) for name in ("one", "two")]
    for clone in clones:
        if stage == "train":
            clone.only("bilstm")
        else:
            clone.forget(folder)
    home = tmp_path / "home"
    _run_at_once(stage, clones, home)
    for clone in clones:
        assert clone.digests(folder) == finished.workspace.digests(folder)
    assert list(home.glob(kept))
    assert list(home.rglob(".*.tmp")) == []
    assert not (home / "store/quarantine").exists() and not (home / "quarantine").exists()


def _run_at_once(stage: str, clones: list[Workspace], home: Path) -> None:
    shared = f"import os; os.environ['POTSTILL_HOME'] = {str(home)!r}"
    with ExitStack() as stack:
        started = [stack.enter_context(clone.started(stage, prelude=shared)) for clone in clones]
        runs = [one.wait().sound() for one in started]
    if stage == "precompute":
        # Each counts what it computed or found, whoever was first.
        assert [sum(run.tally) for run in runs] == [BOTH, BOTH]
