"""A student shared by two tasks, through every stage: tuned on its task, and taken as it is."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline_lib.models.students.student import load_student
from pipeline_lib.shards.columns import matrix

from .conftest import Finished
from .corpus import sentences
from .joint_tasks import STARTS, WARMTH
from .test_encoders import PRETRAIN
from .test_kills import SLOW_TRAINING, TELL_RESUMED, _resumed, _written
from .workspace import TASK, Workspace


@pytest.fixture
def workspace(joined: Finished, tmp_path: Path) -> Workspace:
    return joined.workspace.copy(tmp_path / "workspace")


def _joint(workspace: Workspace) -> set[Path]:
    return set((workspace / ".potstill/joint").glob("[!.]*"))


def test_students_are_tuned_or_taken_as_they_are(joined: Finished) -> None:
    workspace = joined.workspace
    for task, metric in ((TASK, "accuracy"), (WARMTH, "pearson")):
        methods = workspace.scores(task).methods
        for name in ("tuned", "taken"):
            assert methods[name].scores["dev"][metric].mean > 0.6, (task, name)
        joint = json.loads((workspace / "data/joint/mtl/1/training.json").read_text())
        taken = methods["taken"].scores["dev"][metric].by_seed["1"]
        assert joint["best_dev_by_task"][task] == pytest.approx(taken, abs=1e-5)
        assert methods["taken"].training.learning_rate == 2.0e-2
        assert methods["tuned"].training.best_dev_by_rate.keys() == {"1e-05", "0.001"}
        assert methods["tuned"].training.rows == 240 and methods["taken"].training.rows == 480
        assert f"{task} taken: dev" in joined.run.text
    shown = workspace.distill("check").sound().text
    assert f"joint     mtl: {TASK}, {WARMTH} × 2 seeds = 2" in shown


def test_another_task_starts_from_a_groups_encoder(joined: Finished) -> None:
    # A group of one task of sentences; the other is of pairs, and has outputs of its own.
    workspace = joined.workspace
    plan = workspace.plan("elsewhere", WARMTH)
    assert plan.new_outputs and plan.students[1].folder.endswith(f"alone/1/{TASK}")
    student = load_student(workspace / f"data/students/{WARMTH}/elsewhere/1")
    assert student.model.config.pair and student.label_names == ["score"]
    assert workspace.scores(WARMTH).methods["elsewhere"].scores["dev"]["pearson"].mean > 0.9
    assert "elsewhere" not in workspace.scores(TASK).methods


def test_the_student_that_is_taken_predicts_what_was_scored(joined: Finished) -> None:
    workspace = joined.workspace
    folder = workspace / f"data/students/{WARMTH}/taken/2"
    assert workspace.digests(folder) == workspace.digests(f"data/joint/mtl/2/{WARMTH}")
    table = pa.ipc.open_file(workspace / f"data/results/{WARMTH}/predictions.arrow").read_all()
    table = table.filter(pc.equal(table["split"], "test"))
    texts = [text for _, text in sentences()["test"]]
    pairs = list(zip(texts, texts[1:] + texts[:1], strict=True))
    found = load_student(folder).logits(pairs)
    np.testing.assert_allclose(found, matrix(table["taken-2"]), atol=1e-5)


def test_a_tasks_own_row_trains_and_scores_nothing_else(workspace: Workspace) -> None:
    def edit(values: Any) -> None:
        tuned, rates = values["methods"]["tuned"], {"learning_rates": [1.0e-4]}
        values["optimisers"]["own"] = dict(values["optimisers"]["tuning"]) | rates
        values["methods"]["own"] = dict(tuned) | {"optimiser": "own", "tasks": [WARMTH]}

    before, joint = workspace.trained(), _joint(workspace)
    moved = workspace.moved(edit)
    # So DVC runs no stage of the other task.
    assert f"train@{WARMTH}" in moved and not any(TASK in name for name in moved)
    for stage in ("train", "evaluate"):
        workspace.stage(stage, "--task", WARMTH).sound()
    assert "own" in workspace.scores(WARMTH).methods
    assert len(workspace.trained() - before) == 2 and _joint(workspace) == joint


def test_every_output_is_there_and_a_changed_start_runs_what_comes_after(workspace: Workspace) -> None:
    def edit(values: Any) -> None:
        values["joint"]["mtl"]["start"] = "random"
        values["encoders"]["sra"]["centre"] ^= True
        for section, names in (("methods", ("elsewhere", "tiny_layers", "tiny")), ("joint", ("alone",))):
            for name in names:
                del values[section][name]
        del values["encoders"]["general"]

    def leave_none(values: Any) -> None:
        values["methods"] = {"bilstm": values["methods"]["bilstm"]}
        values["joint"], values["encoders"] = {}, {}

    assert [str(path) for stage in workspace.graph() for path in stage.deps + stage.outs if not path.exists] == []
    assert workspace.moved(lambda values: None) == set()
    before, joint = workspace.trained(), _joint(workspace)
    stages = workspace.moved(edit)
    assert {"train_joint@mtl", "pretrain@sra", f"train@{TASK}"} <= stages
    assert not {"train_joint@pieces", f"precompute@{TASK}"} & stages
    for name, *item in (("train_joint", "--joint", "mtl"), PRETRAIN, ("train", "--task", TASK)):
        workspace.stage(name, *item).sound()
    assert len(_joint(workspace) - joint) == 2
    # Of two rows two rates with the first seed, and the better one with the second; of one row one rate with each.
    assert len(workspace.trained() - before) == 8
    # What leaves params.yaml takes its folder along.
    assert _folders(workspace) == [{"mtl", *STARTS}, {"sra"}]
    workspace.moved(leave_none)
    assert _folders(workspace) == [set(), set()]


def _folders(workspace: Workspace) -> list[set[str]]:
    return [{path.name for path in (workspace / "data" / name).glob("*/")} for name in ("joint", "encoders")]


def test_a_joint_training_goes_on_from_its_checkpoints(joined: Finished, workspace: Workspace) -> None:
    workspace.forget("data/joint/mtl", ".potstill/joint")
    with workspace.started("train_joint", "--joint", "mtl", prelude=SLOW_TRAINING) as stage:
        stage.kill_when(lambda: _written(workspace, "joint-*.safetensors", after=25))
    resumed = _resumed(workspace.stage("train_joint", "--joint", "mtl", prelude=TELL_RESUMED))
    assert any(25 <= step < steps for step, steps in resumed)
    assert workspace.digests("data/joint") == joined.workspace.digests("data/joint")


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("task", [TASK, WARMTH])
def test_students_of_word_pieces_are_trained_jointly_too(joined: Finished, name: str, task: str) -> None:
    workspace = joined.workspace
    taken = workspace.digests(f"data/students/{task}/{name}_taken/1")["model.safetensors"]
    assert taken == workspace.digests(f"data/joint/{name}/1/{task}")["model.safetensors"]
    if task == TASK:
        tuned = workspace.digests(f"data/students/{task}/{name}_tuned/1")["model.safetensors"]
        assert tuned != taken
    # What reads is shared, and every task has a head of its own.
    first, other = (load_student(workspace / f"data/joint/{name}/1/{t}") for t in (TASK, WARMTH))
    pairs = zip(first.model.encoder.parameters(), other.model.encoder.parameters(), strict=True)
    assert all(bool((a == b).all()) for a, b in pairs)
