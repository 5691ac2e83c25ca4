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
from .test_kills import SLOW_TRAINING, TELL_RESUMED, _resumed, _written
from .workspace import TASK, Run, Workspace

WARMTH = "warmth"
PIECES = {
    **{"architecture": "biattentive", "tokens": "pieces", "model": "minilm", "embedding_size": 8},
    **{"feedforward": 8, "hidden": 6, "pools": ["max", "mean", "self"], "shared": 8},
    **{"classifier": 8, "dropout": 0.0, "max_words": 16},
}
LAYERS = {
    **{"architecture": "transformer", "model": "minilm", "layers": [0], "pool": "mean"},
    **{"classifier": 8, "dropout": None, "max_words": 32},
}
STARTS = {"pieces": "random", "layers": "model"}
"""Students that read word pieces, and where their joint trainings start."""
SMALL = {"batch_size": 16, "epochs": 4, "precision": "float32", "learning_rates": [2.0e-2]}


def _write_pairs(folder: Path) -> None:
    """Write pairs of sentences, and how many of the two praise."""
    for split, rows in sentences().items():
        lines = ["first,second,score"]
        for (one, a), (other, b) in zip(rows, rows[1:] + rows[:1], strict=True):
            lines.append(f'"{a}","{b}",{2.0 * (one + other) + 0.5}')
        (folder / f"pairs-{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _edit(values: Any) -> None:
    source = {split: f"pairs-{split}.csv" for split in ("train", "dev", "test")}
    values["tasks"][WARMTH] = values["tasks"][TASK] | {
        "source": {"kind": "files", "files": source, "format": "csv", "columns": None},
        **{"text": ["first", "second"], "kind": "regression", "label": "score", "blocks": 1},
        **{"labels": {"min": 0.0, "max": 5.0}, "metrics": ["pearson"]},
    }
    values["optimisers"] = {
        "short": values["optimisers"]["short"],
        "joint": values["optimisers"]["short"] | SMALL | {"evaluate_every": None},
        "tuning": values["optimisers"]["short"] | SMALL | {"learning_rates": [1.0e-5, 1.0e-3]},
    }
    values["joint"] = {
        "mtl": {
            **{"student": "bilstm", "start": "vectors"},
            **{"tasks": {TASK: "original", WARMTH: "original"}, "optimiser": "joint"},
        }
    }
    values["students"] |= {"pieces": PIECES, "layers": LAYERS}
    values["joint"]["alone"] = values["joint"]["mtl"] | {"tasks": {TASK: "original"}}
    for name, start in STARTS.items():
        values["joint"][name] = values["joint"]["mtl"] | {"student": name, "start": start}
    row = {"student": "bilstm", "start": "mtl", "data": "original", "iterations": None}
    row |= {"objective": {"logits": 1.0}, "baseline": "bilstm", "tasks": None}
    values["methods"] = {
        "bilstm": values["methods"]["bilstm"],
        "tuned": row | {"optimiser": "tuning"},
        "taken": row | {"optimiser": None},
        "elsewhere": values["methods"]["bilstm"] | {"start": "alone", "tasks": [WARMTH]},
    }
    for name in STARTS:
        own = {"student": name, "start": name, "baseline": None}
        alone = {"optimiser": "tuning", "tasks": [TASK]}
        values["methods"][f"{name}_tuned"] = row | own | alone
        values["methods"][f"{name}_taken"] = row | own | {"optimiser": None}


@pytest.fixture(scope="module")
def joined(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Run]:
    """Run the whole pipeline with a joint training, once."""
    workspace = finished.workspace.copy(tmp_path_factory.mktemp("joined") / "workspace")
    _write_pairs(workspace / "data/input")
    workspace.params(_edit)
    run = workspace.run_stages()
    workspace.dvc("commit", "--force").sound()
    return workspace, run


@pytest.fixture
def workspace(joined: tuple[Workspace, Run], tmp_path: Path) -> Workspace:
    """Return a copy to change."""
    return joined[0].copy(tmp_path / "workspace")


def _joint(workspace: Workspace) -> set[Path]:
    return set((workspace / ".potstill/joint").glob("[!.]*"))


def test_students_are_tuned_or_taken_as_they_are(joined: tuple[Workspace, Run]) -> None:
    workspace, run = joined
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
        assert f"{task} taken: dev" in run.text
    assert workspace.dvc("repro").sound().stages == ["fingerprint"]


def test_another_task_starts_from_a_groups_encoder(joined: tuple[Workspace, Run]) -> None:
    # A group of one task of sentences; the other is of pairs, and has outputs of its own.
    workspace, _ = joined
    plan = workspace.plan("elsewhere", WARMTH)
    assert plan.new_outputs and plan.students[1].folder.endswith(f"alone/1/{TASK}")
    student = load_student(workspace / f"data/students/{WARMTH}/elsewhere/1")
    assert student.model.config.pair and student.label_names == ["score"]
    assert workspace.scores(WARMTH).methods["elsewhere"].scores["dev"]["pearson"].mean > 0.9
    assert "elsewhere" not in workspace.scores(TASK).methods


def test_the_student_that_is_taken_predicts_what_was_scored(joined: tuple[Workspace, Run]) -> None:
    workspace, _ = joined
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
    workspace.params(edit)
    users = ("train", "evaluate", "measure_speed")
    run = workspace.dvc("repro", *(f"{stage}@{TASK}" for stage in users), f"evaluate@{WARMTH}")
    assert {f"train@{WARMTH}", f"evaluate@{WARMTH}"} <= {*run.sound().stages}
    assert not {f"{stage}@{TASK}" for stage in users} & {*run.stages}
    assert "own" in workspace.scores(WARMTH).methods
    assert len(workspace.trained() - before) == 2 and _joint(workspace) == joint


def test_another_joint_training_tunes_its_rows_anew(workspace: Workspace) -> None:
    def edit(values: Any) -> None:
        values["joint"]["mtl"]["start"] = "random"

    before, joint = workspace.trained(), _joint(workspace)
    workspace.params(edit)
    run = workspace.dvc("repro", f"train@{TASK}").sound()
    assert "train_joint@mtl" in run.stages and "train_joint@alone" not in run.stages
    assert f"precompute@{TASK}" not in run.stages
    assert len(_joint(workspace) - joint) == 2
    # Two rates with the first seed, and the better one with the second.
    assert len(workspace.trained() - before) == 3


def test_a_joint_training_goes_on_from_its_checkpoints(joined: tuple[Workspace, Run], workspace: Workspace) -> None:
    workspace.forget("data/joint/mtl", ".potstill/joint")
    with workspace.started("train_joint", "--joint", "mtl", prelude=SLOW_TRAINING) as stage:
        stage.kill_when(lambda: _written(workspace, "joint-*.safetensors", after=25))
    resumed = _resumed(workspace.stage("train_joint", "--joint", "mtl", prelude=TELL_RESUMED))
    assert any(25 <= step < steps for step, steps in resumed)
    assert workspace.digests("data/joint") == joined[0].digests("data/joint")


def test_a_joint_training_that_leaves_params_takes_its_folder_along(workspace: Workspace) -> None:
    def one(values: Any) -> None:
        del values["joint"]["alone"], values["methods"]["elsewhere"]

    def all_of_them(values: Any) -> None:
        values["joint"], values["methods"] = {}, {"bilstm": values["methods"]["bilstm"]}

    for edit, left in ((one, {"mtl", *STARTS}), (all_of_them, set())):
        workspace.params(edit)
        run = workspace.dvc("repro", f"train@{WARMTH}").sound()
        assert f"train@{WARMTH}" in run.stages and "train_joint@mtl" not in run.stages
        assert {path.name for path in (workspace / "data/joint").glob("*/")} == left
    assert workspace.dvc("repro", f"train@{WARMTH}").sound().stages == ["fingerprint"]


def test_check_names_the_group(workspace: Workspace) -> None:
    shown = workspace.distill("check").sound().text
    assert f"joint     mtl: {TASK}, {WARMTH} × 2 seeds = 2" in shown


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("task", [TASK, WARMTH])
def test_students_of_word_pieces_are_trained_jointly_too(joined: tuple[Workspace, Run], name: str, task: str) -> None:
    workspace, _ = joined
    taken = workspace.digests(f"data/students/{task}/{name}_taken/1")["model.safetensors"]
    assert taken == workspace.digests(f"data/joint/{name}/1/{task}")["model.safetensors"]
    if task == TASK:
        tuned = workspace.digests(f"data/students/{task}/{name}_tuned/1")["model.safetensors"]
        assert tuned != taken
    # What reads is shared, and every task has a head of its own.
    first, other = (load_student(workspace / f"data/joint/{name}/1/{t}") for t in (TASK, WARMTH))
    pairs = zip(first.model.encoder.parameters(), other.model.encoder.parameters(), strict=True)
    assert all(bool((a == b).all()) for a, b in pairs)
