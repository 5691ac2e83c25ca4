"""Which rows a task has, and how much of a transfer set a row takes."""

import json
import re
from pathlib import Path
from typing import Any

from pipeline_lib.base.files import sha256_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import check_params
from pipeline_lib.shards.shard_sets import read_manifest
from pipeline_lib.stages.fingerprint import remove_other_rows

from .workspace import BLOCKS, N_ITER, OUTPUTS, TASK, TRANSFER, Workspace, small_params

ROW = "bilstm_kd_ts"


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


def test_the_rate_is_searched_for_with_the_first_seed(workspace: Workspace) -> None:
    def edit(params: Any) -> None:
        params["optimisers"]["short"]["learning_rates"] = [1.0e-5, 1.0e-2]
        params["methods"] = {"bilstm": params["methods"]["bilstm"]}

    before = workspace.trained()
    workspace.params(edit)
    workspace.stage("train").sound()
    folder = workspace / f"data/students/{TASK}/bilstm"
    search = json.loads((folder / "search.json").read_text())
    assert search["seed"] == 1 and search["learning_rate"] == 1.0e-2
    assert search["best_dev_by_rate"]["1e-05"] < search["best_dev_by_rate"]["0.01"]
    for seed in (1, 2):
        record = json.loads((folder / str(seed) / "training.json").read_text())
        assert record["settings"]["learning_rate"] == 1.0e-2
        assert record["settings"]["seed"] == seed
    # The rate that was there before is found; the new one is tried with one seed alone.
    assert len(workspace.trained() - before) == 1


def test_rows_that_come_to_the_same_are_trained_once(workspace: Workspace) -> None:
    def add(params: Any) -> None:
        rows = params["methods"]
        rows["alike"] = dict(rows["bilstm"])
        for name in ("new", "new_too"):
            rows[name] = dict(rows["bilstm"]) | {"objective": {"labels": 0.5, "logits": 0.5}}
        params["workers"] = 2

    before = workspace.trained()
    workspace.params(add)
    workspace.stage("train").sound()
    students = workspace / "data/students" / TASK
    assert sha256_folder(students / "alike") == sha256_folder(students / "bilstm")
    assert sha256_folder(students / "new") == sha256_folder(students / "new_too")
    assert sha256_folder(students / "new") != sha256_folder(students / "bilstm")
    seeds = sum(path.is_dir() for path in (students / "new").iterdir())
    assert len(workspace.trained() - before) == seeds > 0


def test_the_loss_on_dev_selects_and_is_named(workspace: Workspace) -> None:
    def edit(params: Any) -> None:
        params["optimisers"]["short"] |= {"select": "loss"}
        params["methods"] = {"bilstm": params["methods"]["bilstm"]}

    workspace.params(edit)
    shown = workspace.stage("train").sound().text
    assert re.search(r"bilstm: dev [\d.]+ at the lowest loss [\d.]+, ", shown)
    folder = workspace / f"data/students/{TASK}/bilstm"
    losses = json.loads((folder / "search.json").read_text())["dev_loss_by_rate"]
    for seed in (1, 2):
        record = json.loads((folder / str(seed) / "training.json").read_text())
        assert record["best_dev_loss"] == min(one["dev_loss"] for one in record["history"])
        if seed == 1:
            assert [*losses.values()] == [record["best_dev_loss"]]


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
