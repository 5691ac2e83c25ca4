"""Edited code in a copy of the project: what must change changes, and nothing else is computed."""

from .workspace import TASK, Workspace


def test_another_loss_gives_other_students(workspace: Workspace) -> None:
    workspace = workspace.with_own_code()
    before, folder = workspace.trained(), f"data/students/{TASK}"
    students, teacher = workspace.digests(folder), workspace.digests(f"data/teachers/{TASK}")
    squared = "return (student - teacher).pow(2).sum(-1).mean()"
    path = workspace / "pipeline_lib/training/objectives.py"
    path.write_text(path.read_text().replace(squared, squared.replace("pow(2)", "abs()")))
    for stage in ("finetune_teacher", "train"):
        workspace.stage(stage).sound()
    # The teacher's code imports the module too: it is fine-tuned again, to the same bytes.
    assert workspace.digests(f"data/teachers/{TASK}") == teacher and workspace.trained() > before
    after = workspace.digests(folder)
    weights = [name for name in students if name.endswith("model.safetensors")]
    changed = {name for name in weights if after[name] != students[name]}
    assert changed == {name for name in weights if "_kd" in name}
