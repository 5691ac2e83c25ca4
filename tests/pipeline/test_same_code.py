"""Edited code in a copy of the project: what must change changes, and nothing else is computed."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lib.shards.shard_sets import ShardSet

from .workspace import BOTH, TASK, TEACHER, Workspace


def edit(workspace: Workspace, file: str, old: str, new: str) -> None:
    path = workspace / "pipeline_lib" / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def stages_of_other_code(workspace: Workspace) -> set[str]:
    """Return the stages whose digests of code have changed, for which DVC runs them again."""
    before = workspace.digests("data/fingerprints")
    workspace.stage("fingerprint").sound()
    after = workspace.digests("data/fingerprints")
    return {Path(name).stem for name, digest in after.items() if before[name] != digest}


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


def test_another_label_loss_gives_another_teacher(workspace: Workspace) -> None:
    before = workspace.digests(f"data/teachers/{TASK}")
    entropy = "return F.cross_entropy(outputs, labels)"
    edit(workspace, "base/kinds/classes.py", entropy, entropy.replace("F.", "-F."))
    workspace.stage("finetune_teacher").sound()
    after = workspace.digests(f"data/teachers/{TASK}")
    weights = f"{TEACHER}/model.safetensors"
    assert after[weights] != before[weights]


def test_another_tagger_gives_other_tags(workspace: Workspace) -> None:
    edit(
        workspace,
        "corpora/tasks/tagging.py",
        "yield [token.tag_ or token.pos_ for token in doc]",
        'yield ["NN" for token in doc]',
    )
    moved = stages_of_other_code(workspace)
    assert "prepare" in moved and not {"fetch_data", "train", "evaluate"} & moved
    workspace.stage("prepare").sound()
    tags = ShardSet.open(workspace / f"data/tasks/{TASK}/train").to_table()["tags"]
    assert set(pa.compute.list_flatten(tags).to_pylist()) == {"NN"}


def test_scores_follow_the_students_code(workspace: Workspace) -> None:
    with (workspace / "pipeline_lib/models/networks/student.py").open("a") as file:
        file.write("\nADDED = 1\n")
    moved = stages_of_other_code(workspace)
    assert {"train", "evaluate", "measure_speed"} <= moved and "prepare" not in moved


def test_after_an_edited_docstring_nothing_runs_and_all_is_found(workspace: Workspace) -> None:
    before, entries = workspace.trained(), {k: workspace.entries(k) for k in ("tags", "logits")}
    teachers = sorted(path.name for path in _teachers(workspace))
    files = list((workspace / "pipeline_lib").rglob("*.py"))
    for file in files:
        # The first line of each module is its docstring's.
        file.write_text(file.read_text().replace('"""', '"""Reworded. ', 1))
    assert stages_of_other_code(workspace) == set()
    # The store and the trained models find everything, too.
    stages = ("prepare", "finetune_teacher", "precompute", "train")
    runs = {stage: workspace.stage(stage).sound() for stage in stages}
    assert runs["precompute"].tally == (0, BOTH)
    assert workspace.trained() == before
    assert sorted(path.name for path in _teachers(workspace)) == teachers
    assert {k: workspace.entries(k) for k in entries} == entries
    assert "fine-tuning" not in runs["finetune_teacher"].text


def _teachers(workspace: Workspace) -> list[Path]:
    return [path for path in (workspace / ".potstill/teachers").iterdir() if path.is_dir()]
