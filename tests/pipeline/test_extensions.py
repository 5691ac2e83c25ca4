"""A student and objective terms, defined in a few lines outside the library, all the way to an exported student."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_file
from pipeline_lib.base.workspace import check_pipeline

from .workspace import BLOCKS, TASK, Workspace

PAGE = Path(__file__).parents[2] / "docs/extending.md"
EXTENSION, PASS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
LOSSES = """
def absolute(own, target, temperature, *, scale=1.0):
    return scale * (own - target).abs().sum(-1).mean()
"""
STUDENT = f"data/students/{TASK}/gru_kd/1"


@pytest.fixture
def extended(workspace: Workspace) -> Workspace:
    (workspace / "ticketlab.py").write_text(EXTENSION)
    (workspace / "ticketlab_losses.py").write_text(LOSSES)

    def edit(values: dict) -> None:
        values["extensions"] = ["ticketlab"]
        values["students"]["gru"] = {"architecture": "gru", "hidden": 8, "dropout": 0.0, "max_words": 16}
        row = dict(values["methods"]["bilstm_kd"])
        values["methods"] |= {"gru_kd": row | {"student": "gru", "objective": {"absolute": 1.0, "small": 0.01}}}

    workspace.params(edit)
    return workspace


def test_they_are_trained_scored_timed_and_exported(extended: Workspace) -> None:
    for stage in ("train", "evaluate", "measure_speed"):
        extended.stage(stage).sound()
    methods = extended.scores(TASK).methods
    gru, plain = methods["gru_kd"], methods["bilstm"]
    assert gru.scores["dev"]["accuracy"].mean > 0.7 and gru.parameters != plain.parameters
    config = json.loads((extended / STUDENT / "config.json").read_text())
    assert config["architecture"]["architecture"] == "gru" and config["defined_in"] == "ticketlab"
    # Other processes need no more than the folder; an exported student not even the module.
    answer = extended.distill("predict", STUDENT, "a good film").sound().text.splitlines()[-1]
    extended.distill("export", STUDENT, "exported", "--to", "onnx").sound()
    (extended / "ticketlab.py").rename(extended / "elsewhere.py")
    again = extended.distill("predict", "exported", "a good film").sound().text.splitlines()[-1]
    np.testing.assert_allclose(float(again.split("\t")[1]), float(answer.split("\t")[1]), atol=1e-3)
    assert again.split("\t")[0] == answer.split("\t")[0]
    refused = extended.distill("predict", STUDENT, "a good film").error
    assert "ticketlab cannot be imported" in refused
    assert "extensions: ticketlab cannot be imported" in extended.stage("train").error
    shown = extended.distill("shards", "show", f"data/tasks/{TASK}/dev", "--rows", "1").sound().text
    assert "ticketlab cannot be imported" in shown and "1 of " in shown


def test_what_is_edited_outside_is_seen(extended: Workspace) -> None:
    extended.stage("fingerprint").sound()
    before = json.loads((extended / "data/fingerprints/train.json").read_text())
    assert {"ticketlab", "ticketlab_losses"} <= {*before}
    assert "ticketlab" not in json.loads((extended / "data/fingerprints/prepare.json").read_text())
    extended.stage("train").sound()
    student, trained = sha256_file(extended / STUDENT / "model.safetensors"), extended.trained()
    extended.forget(f"data/students/{TASK}")
    extended.stage("train").sound()
    assert extended.trained() == trained
    # The helper alone is edited: DVC's stage and the key of the student have it, and no other student's.
    (extended / "ticketlab_losses.py").write_text(LOSSES.replace("(own - target)", "2 * (own - target)"))
    extended.stage("fingerprint").sound()
    after = json.loads((extended / "data/fingerprints/train.json").read_text())
    assert [name for name in before if before[name] != after[name]] == ["ticketlab_losses"]
    extended.stage("train").sound()
    assert sha256_file(extended / STUDENT / "model.safetensors") != student
    assert len(extended.trained() - trained) == 2  # two seeds


def test_a_term_has_parameters(extended: Workspace) -> None:
    def give(**parameters: float) -> None:
        objective = {"absolute": 1.0, "parameters": {"absolute": parameters}}
        extended.params(lambda values: values["methods"]["gru_kd"].update(objective=objective))

    trained = []
    for scale in (1.0, 2.0):
        give(scale=scale)
        extended.stage("train").sound()
        trained.append(extended.trained())
    assert len(trained[1] - trained[0]) == 2  # two seeds, of this student alone
    give(size=1.0)
    assert "`parameters`: no absolute.size; there are absolute.scale" in extended.stage("train").error


MINE = """
  mine:
    cmd: python lengths.py
    deps: [lengths.py, data/tasks/reviews/train]
    outs: [data/lengths]
"""


def test_a_stage_of_ones_own_blocks_nothing(extended: Workspace) -> None:
    pipeline = extended / "dvc.yaml"
    pipeline.write_text(pipeline.read_text().rstrip() + MINE)
    (extended / "lengths.py").write_text(PASS)
    for computed, reused in ((BLOCKS, 0), (0, BLOCKS)):
        printed = extended.command("python", "lengths.py", fast=False).sound().text
        assert f"computed {computed} shards, reused {reused}" in printed
    shown = extended.distill("shards", "show", "data/lengths", "--rows", "1").sound().text.splitlines()
    assert "  key " in shown[0] and shown[2] == f"  length={len(shown[1]) - 2}"
    assert "\nmine " in extended.distill("plan").sound().text
    check_pipeline(extended.folder)
    pipeline.write_text(pipeline.read_text().replace("stages.prepare", "stages.other"))
    with pytest.raises(PotstillError, match="not the pipeline of this version"):
        check_pipeline(extended.folder)
