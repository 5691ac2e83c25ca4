"""A student and an objective term, defined in a few lines outside the library, in the pipeline."""

import json

from pipeline_lib.base.files import sha256_file

from .workspace import TASK, Workspace

EXTENSION = """
from typing import Literal

import torch

from pipeline_lib.models.networks.layers import WordEmbeddings
from pipeline_lib.models.students.student import register_student
from pipeline_lib.params import StudentSettings
from pipeline_lib.training.objectives import Term, register_term


class GRU(StudentSettings):
    architecture: Literal["gru"]
    hidden: int


class GRUEncoder(torch.nn.Module):
    def __init__(self, words, width, settings):
        super().__init__()
        self.embeddings = WordEmbeddings(words, width, "trained")
        self.gru = torch.nn.GRU(width, settings.hidden, batch_first=True)
        self.width = settings.hidden

    def forward(self, ids, lengths):
        states, _ = self.gru(self.embeddings(ids))
        return states[torch.arange(len(ids)), lengths - 1]


def absolute(own, target, temperature):
    return (own - target).abs().sum(-1).mean()


register_student(GRU, GRUEncoder)
register_term("absolute", Term("logits", "logits", absolute))
"""
PRELUDE = "import extension"
STUDENT = f"data/students/{TASK}/gru_kd/1"


def add_row(workspace: Workspace) -> None:
    (workspace / "extension.py").write_text(EXTENSION)

    def edit(values: dict) -> None:
        values["students"]["gru"] = {
            "architecture": "gru", "hidden": 8, "dropout": 0.0, "max_words": 16
        }  # fmt: skip
        row = dict(values["methods"]["bilstm_kd"])
        values["methods"]["gru_kd"] = row | {"student": "gru", "objective": {"absolute": 1.0}}

    workspace.params(edit)


def test_they_are_trained_found_and_scored(workspace: Workspace) -> None:
    add_row(workspace)
    for stage in ("train", "evaluate"):
        workspace.stage(stage, prelude=PRELUDE).sound()
    methods = workspace.scores(TASK).methods
    own, plain = methods["gru_kd"], methods["bilstm"]
    assert own.scores["dev"]["accuracy"].mean > 0.7 and own.parameters != plain.parameters
    config = json.loads((workspace / STUDENT / "config.json").read_text())
    assert config["architecture"]["architecture"] == "gru"
    # Found the second time, and trained anew when its code is another.
    before, trained = sha256_file(workspace / STUDENT / "model.safetensors"), workspace.trained()
    workspace.forget(f"data/students/{TASK}")
    workspace.stage("train", prelude=PRELUDE).sound()
    assert workspace.trained() == trained
    edited = EXTENSION.replace("(own - target).abs()", "2 * (own - target).abs()")
    (workspace / "extension.py").write_text(edited)
    workspace.stage("train", prelude=PRELUDE).sound()
    assert sha256_file(workspace / STUDENT / "model.safetensors") != before
    assert len(workspace.trained() - trained) == 2  # two seeds


def test_without_its_code_a_student_is_refused_by_name(workspace: Workspace) -> None:
    add_row(workspace)
    refused = workspace.stage("train")
    error = refused.text
    assert refused.status == 1 and "Traceback" not in error
    assert "students.gru" in error and "'gru'" in error
    assert "objective: no term 'absolute'; there are logits, soft_labels, labels" in error
