"""Sentences, encoders trained on them, and students that start there, through every stage."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline_lib.base.layout import Layout
from pipeline_lib.shards.shard_sets import SetReference, ShardSet, read_manifest
from pipeline_lib.training.distillation.students import StudentTraining
from tests.commands.running import distill

from .conftest import Finished
from .joint_tasks import SENTENCES
from .test_kills import CHECKPOINTS, SLOW_TRAINING, TELL_RESUMED, _resumed, _written, slowed
from .workspace import STORE, TASK, Workspace

VECTORS, ENCODER = Path("data/vectors"), Path("data/encoders/sra")
PRETRAIN = ("pretrain", "--encoder", "sra")
SLOW_VECTORS = slowed("pipeline_lib.outputs.vectors", "VectorPass", "outputs")


@pytest.fixture
def workspace(joined: Finished, tmp_path: Path) -> Workspace:
    return joined.workspace.copy(tmp_path / "workspace")


def test_students_start_from_the_encoder(joined: Finished) -> None:
    workspace, text = joined.workspace, joined.run.text
    record = json.loads((workspace / ENCODER / "training.json").read_text())
    assert 0.0 < record["loss"] < record["constant_loss"]
    assert record["sentences"] == SENTENCES + 240 and record["held_back_sentences"] == 60
    assert workspace.plan("bilstm_sra").encoder.folder == ENCODER.as_posix()
    scores = json.loads((workspace / "metrics.json").read_text())[TASK]["methods"]
    assert scores["bilstm_sra"]["test"]["accuracy"]["mean"] > 0.8
    assert "gain" in scores["bilstm_sra_kd"]["test"]
    search = json.loads((workspace / f"data/students/{TASK}/bilstm_sra/search.json").read_text())
    assert set(search["best_dev_by_rate"]) == {"0.0001", "0.02"}
    assert "held back" in text and "bilstm_sra_kd" in text


def test_layers_are_learned_first_and_answers_after(joined: Finished) -> None:
    workspace, text = joined.workspace, joined.run.text
    record = json.loads((workspace / "data/encoders/general/training.json").read_text())
    assert 0.0 < record["loss"] < record["history"][0]["dev"] and record["sentences"] == 100
    students = workspace / f"data/students/{TASK}"
    first = [json.loads((students / f"tiny_layers/{s}/training.json").read_text()) for s in (1, 2)]
    assert all(own["history"][0]["dev"] < own["best_dev"] < 0.0 for own in first)
    scores = workspace.scores(TASK).methods
    assert "tiny_layers" not in scores and scores["tiny"].scores["dev"]["accuracy"].mean > 0.8
    assert f"{TASK} tiny_layers: loss on dev" in text and f"{TASK} tiny: dev" in text


def test_what_is_drawn_beside_a_trained_student_depends_on_the_seed_alone(
    joined: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(joined.workspace.folder)
    monkeypatch.setenv("POTSTILL_HOME", str(joined.workspace / ".potstill"))
    layout = Layout()
    plans = {method: joined.workspace.plan(method) for method in ("tiny_layers", "tiny")}
    # The second stage learns layers again, as the first one does.
    copied = ("objective", "teacher", "teacher_layers")
    change = {name: getattr(plans["tiny_layers"], name) for name in copied}
    plan = plans["tiny"].started(layout, [1]).model_copy(update=change)
    dev = SetReference.to(layout.split(TASK, "dev"))
    training = StudentTraining(plan, layout.vocabulary(TASK), dev, 1, 1e-3, "cpu")
    found = []
    for drawn in (1, 2):
        torch.rand(drawn)
        found.append(training.prepare().model.state_dict())
    assert found[0].keys() == found[1].keys() and "hidden.weight" in found[0]
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_the_second_stage_leaves_the_first_alone(workspace: Workspace) -> None:
    def edit(values: Any) -> None:
        values["optimisers"]["second"] = dict(values["optimisers"]["after_layers"]) | {"warmup": 0.1}
        values["methods"]["tiny"]["optimiser"] = "second"

    before, folder = workspace.trained(), f"data/students/{TASK}"
    first = workspace.digests(f"{folder}/tiny_layers")
    second = workspace.digests(f"{folder}/tiny")
    workspace.params(edit)
    workspace.stage("train").sound()
    # Two rates with the first seed, and the better one with the second.
    assert len(workspace.trained() - before) == 3
    assert workspace.digests(f"{folder}/tiny_layers") == first
    assert workspace.digests(f"{folder}/tiny") != second


def test_vectors_answer_to_their_sentences(joined: Finished) -> None:
    workspace = joined.workspace
    assert "FAULT" not in workspace.distill("verify", "data").sound().text
    shown = workspace.distill("shards", "show", str(VECTORS / "wikipedia/train"), "--rows", "2")
    assert "Place" in shown.sound().text and "vector: length" in shown.text
    joined = workspace.distill("shards", "show", str(VECTORS / f"tasks/{TASK}/original")).sound()
    assert "vector: length" in joined.text


def test_the_sentences_are_an_index(joined: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(joined.workspace.folder)
    made = distill("index", "mine", "data/wikipedia/train", "--encoder", "data/encoders/sra")
    assert f"mine: {SENTENCES} sentences; computed 1 shards, reused 0" in made
    text = ShardSet.open(Path("data/wikipedia/train")).to_table()["text"][7].as_py()
    found = distill("search", "mine", text, "--k", "3", "--json")
    # What it says of unknown words is on stderr, which the runner puts beside it.
    lines = [json.loads(line) for line in found.splitlines() if line.startswith("{")]
    assert lines[0]["text"] == text and len(lines) == 3


def test_vectors_go_on_with_the_missing_shards(joined: Finished, workspace: Workspace) -> None:
    workspace.forget(VECTORS, STORE / "vectors")
    with workspace.started("precompute_vectors", prelude=SLOW_VECTORS) as stage:
        stage.kill_when(lambda: len(workspace.entries("vectors")) >= 2)
    done = len(workspace.entries("vectors"))
    workspace.stage("precompute_vectors").sound()
    assert 2 <= done < len(workspace.entries("vectors"))
    assert workspace.digests(VECTORS) == joined.workspace.digests(VECTORS)


@pytest.mark.parametrize("code", ["same", "other"])
def test_vectors_refill_an_empty_store(code: str, workspace: Workspace) -> None:
    workspace.forget(".potstill")
    sets = [VECTORS / "wikipedia" / split for split in ("train", "validation")]
    sets.append(VECTORS / f"tasks/{TASK}/original")
    for path in (workspace / folder / "manifest.json" for folder in sets):
        manifest = json.loads(path.read_text())
        manifest["made_from"]["code"] = {"same": manifest["made_from"]["code"]}.get(code, code)
        path.chmod(0o644)
        path.write_text(json.dumps(manifest))
    text = workspace.distill("store", "import").sound().text
    if code == "other":
        assert f"{sets[0]}: made from other code; --adopt takes it if rows come out alike" in text
        text = workspace.distill("store", "import", "--adopt").sound().text
    for folder in sets:
        shards = len(read_manifest(workspace / folder).shards)
        assert f"{folder}: {shards} shards taken, 0 known" in text
    assert text.count("differ by") == (3 if code == "other" else 0)
    run = workspace.stage("precompute_vectors").sound()
    assert len(re.findall(r"computed 0 shards, reused [1-9]", run.text)) == 3


def test_pretraining_goes_on_from_its_checkpoint(joined: Finished, workspace: Workspace) -> None:
    workspace.forget(ENCODER, ".potstill/encoders")
    with workspace.started(*PRETRAIN, prelude=SLOW_TRAINING) as stage:
        stage.kill_when(lambda: _written(workspace, "encoders-*.safetensors", after=25))
    [(step, steps)] = _resumed(workspace.stage(*PRETRAIN, prelude=TELL_RESUMED))
    assert 25 <= step < steps
    assert workspace.digests(ENCODER) == joined.workspace.digests(ENCODER)
    assert list((workspace / CHECKPOINTS).glob("encoders-*")) == []
