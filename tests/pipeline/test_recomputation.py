"""What is computed again after a change, and what is found; which rows a task has, and what a row takes."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.layout import Layout
from pipeline_lib.params import check_params
from pipeline_lib.shards.shard_sets import read_manifest
from pipeline_lib.stages.fingerprint import remove_other_rows

from .conftest import Finished
from .workspace import BLOCKS, BOTH, N_ITER, OUTPUTS, SHARDS, STORE, TASK, TEACHER, TRANSFER, Workspace, small_params

ROW = "bilstm_kd_ts"


def _keep_teacher(params: Any) -> None:
    tuning = {"kind": "finished", "checkpoint": "teacher_{task}"}
    params["teachers"][TEACHER] |= {"model": None, "tuning": tuning}
    # Replacement would draw from other words once there are new examples.
    params["transfer"]["full"]["p_pos"] = 0.0


@pytest.fixture(scope="module")
def kept(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a workspace that is given the finished run's teacher, and replaces no words."""
    workspace = finished.workspace.copy(tmp_path_factory.mktemp("kept") / "workspace")
    (workspace / f"data/teachers/{TASK}/{TEACHER}").rename(workspace / f"data/input/teacher_{TASK}")
    workspace.params(_keep_teacher)
    # So that only the given files can bring the old teacher back.
    workspace.forget("data/teachers", "data/lexicons", OUTPUTS, TRANSFER)
    for stage in ("fetch_models", "augment", "finetune_teacher"):
        workspace.stage(stage).sound()
    assert workspace.stage("precompute").sound().tally == (SHARDS - BLOCKS, 2 * BLOCKS)
    return workspace


def test_a_teacher_fine_tuned_elsewhere_is_taken_as_it_is(finished: Finished, kept: Workspace) -> None:
    weights = f"data/teachers/{TASK}/{TEACHER}/model.safetensors"
    assert (
        kept.digests(Path(weights).parent)["model.safetensors"]
        == (finished.workspace.digests(Path(weights).parent)["model.safetensors"])
    )
    assert kept.entries("logits") > finished.workspace.entries("logits")
    assert "fine-tuned elsewhere" in (kept / f"data/teachers/{TASK}/{TEACHER}/training.json").read_text()


def test_a_raised_n_iter_computes_the_new_iterations_only(workspace: Workspace) -> None:
    before = workspace.digests(OUTPUTS)
    assert workspace.iterate(N_ITER + 1).tally == (BLOCKS, BOTH)
    after = workspace.digests(OUTPUTS)
    shards = {name for name in before if name.endswith(".arrow")}
    assert {name: after[name] for name in shards} == {name: before[name] for name in shards}
    assert len(after) == len(before) + BLOCKS
    # The store finds everything, where DVC's cache was thrown away.
    assert workspace.iterate(N_ITER).tally == (0, BOTH)
    assert workspace.digests(OUTPUTS) == before


def test_another_teacher_shares_no_output_with_the_first(workspace: Workspace) -> None:
    first, keys = workspace.digests(OUTPUTS), workspace.entries("logits")
    old = read_manifest(workspace / OUTPUTS).made_from["teacher"]

    def another_rate(params: Any) -> None:
        [rate] = params["teachers"][TEACHER]["tuning"]["learning_rates"]
        params["teachers"][TEACHER]["tuning"]["learning_rates"] = [rate / 2]

    workspace.params(another_rate)
    workspace.stage("finetune_teacher").sound()
    assert workspace.stage("precompute").sound().tally == (SHARDS, BLOCKS)
    new = read_manifest(workspace / OUTPUTS).made_from["teacher"]
    assert new != old
    assert workspace.entries("logits") > keys
    assert len(workspace.entries("logits") - keys) == SHARDS + 2  # dev and test
    second = workspace.digests(OUTPUTS)
    assert all(second[name] != first[name] for name in first if name.endswith(".arrow"))


def test_the_store_is_where_the_stages_say(finished: Finished) -> None:
    # The originals of both recipes are the same shards; dev and test have one each, untagged.
    assert len(finished.workspace.entries("logits")) == SHARDS + 2
    assert len(finished.workspace.entries("tags")) == BLOCKS
    assert not (finished.workspace / STORE / "quarantine").exists()


def test_a_transfer_set_for_other_tasks_makes_no_row(workspace: Workspace) -> None:
    def edit(params: Any) -> None:
        params["tasks"]["other"] = params["tasks"][TASK]
        params["transfer"]["full"]["tasks"] = ["other"]

    workspace.params(edit)
    for stage in ("augment", "precompute", "train", "evaluate"):
        workspace.stage(stage).sound()
    assert not (workspace / f"data/students/{TASK}/{ROW}").exists()
    assert not (workspace / TRANSFER).exists() and not (workspace / OUTPUTS).exists()
    scores = workspace.scores(TASK)
    assert ROW not in scores.methods and "bilstm_kd" in scores.methods


def test_a_row_of_the_first_iterations_outlives_more_of_them(workspace: Workspace) -> None:
    def first_only(params: Any) -> None:
        params["methods"][ROW]["iterations"] = 1

    workspace.params(first_only)
    workspace.stage("train").sound()
    manifest = read_manifest(workspace / TRANSFER)
    assert len(manifest.shards) == BLOCKS * (1 + N_ITER)
    assert len(manifest.upto(1).shards) == 2 * BLOCKS
    assert workspace.plan(ROW).inputs.digest == manifest.upto(1).digest != manifest.digest
    before, students = workspace.trained(), workspace.digests(f"data/students/{TASK}/{ROW}")
    workspace.iterate(N_ITER + 1)
    workspace.stage("train").sound()
    # The transfer set has grown; what this row learned from its first iterations is found.
    assert len(read_manifest(workspace / TRANSFER).shards) == BLOCKS * (2 + N_ITER)
    assert workspace.digests(f"data/students/{TASK}/{ROW}") == students
    assert workspace.trained() == before


def test_the_outputs_of_rows_that_are_gone_are_deleted(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    values = small_params() | {"refined": ["minilm"]}
    values["teachers"]["minilm"]["tuning"] |= {"kind": "refined", "ranking": {}}
    folders = (layout.refined, layout.encoders, layout.all_joint)
    for name in ("minilm", "gone"):
        for folder in folders:
            (folder / name).mkdir(parents=True)
            (folder / name / "model.safetensors").touch()
    remove_other_rows(check_params(values), layout)
    left = [{path.name for path in folder.glob("*/")} for folder in folders]
    assert left == [{"minilm"}, set(), set()]


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
