"""Edited code in a copy of the project: what must change changes, and nothing else is computed."""

import pytest

from .workspace import TASK, Workspace


def edit(workspace: Workspace, file: str, old: str, new: str) -> None:
    path = workspace / "pipeline_lib" / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


@pytest.fixture
def workspace(workspace: Workspace) -> Workspace:
    """Return the workspace with a copy of the library that tests can edit."""
    return workspace.with_own_code()


def test_another_loss_gives_other_students(workspace: Workspace) -> None:
    before, folder = workspace.trained(), f"data/students/{TASK}"
    students, teacher = workspace.digests(folder), workspace.digests(f"data/teachers/{TASK}")
    squared = "return (student - teacher).pow(2).sum(-1).mean()"
    edit(workspace, "training/objectives.py", squared, squared.replace("pow(2)", "abs()"))
    for stage in ("finetune_teacher", "train"):
        workspace.stage(stage).sound()
    # The teacher's code imports the module too: it is fine-tuned again, to the same bytes.
    assert workspace.digests(f"data/teachers/{TASK}") == teacher
    assert not workspace.trained() & before - before
    after = workspace.digests(folder)
    weights = [name for name in students if name.endswith("model.safetensors")]
    changed = {name for name in weights if after[name] != students[name]}
    assert changed == {name for name in weights if "_kd" in name}
