"""What is computed again after a change, and what is found: counted by the stages themselves."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.shards.shard_sets import read_manifest

from .conftest import Finished
from .corpus import sentences, write_encoder, write_rows
from .workspace import BLOCKS, BOTH, N_ITER, OUTPUTS, SHARDS, STORE, TASK, TEACHER, TRANSFER, Workspace


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


@pytest.fixture
def kept_copy(kept: Workspace, tmp_path: Path) -> Workspace:
    """Return a copy of ``kept`` to change."""
    return kept.copy(tmp_path / "workspace")


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


def test_an_added_sentence_computes_its_own_block_only(kept_copy: Workspace) -> None:
    before = kept_copy.digests(TRANSFER)
    rows = sentences()["train"]
    rows.insert(17, (1, "A warm and funny surprise, quite unlike the others."))
    write_rows(kept_copy / "data/input/train.tsv", rows)
    for stage in ("fetch_data", "prepare", "augment"):
        kept_copy.stage(stage).sound()
    assert kept_copy.stage("precompute").sound().tally == (1 + N_ITER, BOTH - 1 - N_ITER)
    after = kept_copy.digests(TRANSFER)
    changed = {n for n in before if after[n] != before[n] and n.endswith(".arrow")}
    assert len({name.split("-")[0] for name in changed}) == 1
    assert len(changed) == 1 + N_ITER


def test_a_reordered_file_computes_nothing(kept_copy: Workspace) -> None:
    before = kept_copy.digests(TRANSFER)
    write_rows(kept_copy / "data/input/train.tsv", sentences()["train"][::-1])
    train = kept_copy.digests(f"data/tasks/{TASK}/train")
    for stage in ("fetch_data", "prepare"):
        kept_copy.stage(stage).sound()
    # The prepared rows came out the same, so DVC asks for no new outputs at all.
    assert kept_copy.digests(f"data/tasks/{TASK}/train") == train
    kept_copy.stage("augment").sound()
    assert kept_copy.digests(TRANSFER) == before
    kept_copy.forget(OUTPUTS)
    assert kept_copy.stage("precompute").sound().tally == (0, BOTH)


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


def test_outputs_of_another_transfer_set_are_not_trained_on(workspace: Workspace) -> None:
    workspace.params(lambda params: params["tasks"][TASK]["augment"].update(n_iter=N_ITER + 1))
    workspace.stage("augment").sound()
    error = workspace.stage("train").error
    assert f"{SHARDS} output shards for {SHARDS + BLOCKS} input shards" in error


def test_a_checkpoint_with_another_number_of_labels_is_refused(workspace: Workspace) -> None:
    write_encoder(workspace / f"data/input/teacher_{TASK}", labels=3)
    workspace.params(_keep_teacher)
    error = workspace.stage("fetch_models").error
    assert f"teacher_{TASK}" in error
    assert "the model has 3 labels" in error and f"tasks.{TASK}.labels has 2" in error


def test_the_store_is_where_the_stages_say(finished: Finished) -> None:
    # The originals of both recipes are the same shards; dev and test have one each, untagged.
    assert len(finished.workspace.entries("logits")) == SHARDS + 2
    assert len(finished.workspace.entries("tags")) == BLOCKS
    assert not (finished.workspace / STORE / "quarantine").exists()
