"""Students of several labels: saved, opened, predicted with and exported in every format."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline_lib.base.files import read_json
from pipeline_lib.base.kinds.probabilities import sigmoid
from pipeline_lib.exports.card.card import model_card
from pipeline_lib.exports.hub import export_hub
from pipeline_lib.exports.numpy_export import export_numpy
from pipeline_lib.exports.onnx.exporter import export_onnx, export_onnx_int8
from pipeline_lib.exports.opening import load_student
from pipeline_lib.models.students.student import load_student as load_trained
from pipeline_lib.tables.answer_writer import AnsweredBatch, json_lines, text_lines

from .students import sample, write_student

NAMES = ["toxic", "threat", "spam"]
EXPORTS = {"onnx": export_onnx, "onnx-int8": export_onnx_int8, "numpy": export_numpy}
EXPORTS |= {"hub": export_hub}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a student, and beside it all its exports."""
    base = tmp_path_factory.mktemp("several")
    own = write_student(base / "own", "bilstm", False, NAMES, kind="multilabel")
    for form, export in EXPORTS.items():
        export(own, base / form)
    return own


def test_a_student_says_that_several_labels_may_apply(folder: Path) -> None:
    assert read_json(folder / "config.json")["problem_type"] == "multi_label_classification"
    student = load_trained(folder)
    assert (student.kind, student.label_names) == ("multilabel", NAMES)


@pytest.mark.parametrize("form", ["own", *EXPORTS])
def test_every_form_gives_lists_and_a_probability_for_each_label(folder: Path, form: str) -> None:
    wanted = load_trained(folder).logits(sample(False))
    student = load_student(folder.with_name(form))
    found = student.predict(sample(False))
    assert (student.kind, student.labels) == ("multilabel", NAMES)
    np.testing.assert_allclose(found.logits, wanted, atol=0.1 if form == "onnx-int8" else 4e-6)
    np.testing.assert_allclose(found.probabilities, sigmoid(found.logits), atol=1e-6)
    assert found.labels == [[name for name, value in zip(NAMES, row, strict=True) if value > 0] for row in found.logits]
    config = read_json(folder.with_name(form) / "config.json")
    assert config["problem_type"] == "multi_label_classification"
    none = student.predict([])
    assert (none.labels, none.probabilities.shape) == ([], (0, 3))


def test_the_metadata_of_an_onnx_file_says_sigmoid(folder: Path) -> None:
    import onnx

    model = onnx.load(folder.with_name("onnx") / "onnx/model.onnx")
    told = {prop.key: prop.value for prop in model.metadata_props}
    assert (told["kind"], told["activation"]) == ("multilabel", "sigmoid")
    assert "same_class" in json.loads(told["deviation"])["made up"]


@pytest.mark.slow
def test_transformers_gives_a_probability_for_each_label(folder: Path) -> None:
    # In a process of its own: this one may know the students' classes.
    code = (
        "import json; from transformers import pipeline; model = pipeline('text-classification', '.', "
        "trust_remote_code=True, device='cpu'); print(json.dumps(model(['a good film'], top_k=None)[0]))"
    )
    own = os.environ | {"HF_HOME": str(folder.with_name("home")), "HF_HUB_OFFLINE": "1"}
    command, place = [sys.executable, "-c", code], folder.with_name("hub")
    done = subprocess.run(command, cwd=place, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    shares = {one["label"]: one["score"] for one in found}
    wanted = load_student(folder).predict(["a good film"]).probabilities[0]
    assert shares == pytest.approx(dict(zip(NAMES, wanted.tolist(), strict=True)), abs=1e-6)


def test_the_card_says_what_applies(folder: Path) -> None:
    card = model_card(folder, load_trained(folder))
    assert "says which of these labels apply to sentences: toxic, threat, spam" in card
    assert "a probability for each label; those above 0.5 apply" in card


def test_the_numpy_student_prints_labels(folder: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "student.py", "a good film"],
        **{"cwd": folder.with_name("numpy"), "env": bare, "capture_output": True, "text": True},
    )
    assert done.returncode == 0, done.stderr
    wanted = load_student(folder).predict(["a good film"])
    shares = [f"{share:.4f}" for share in wanted.probabilities[0] if share > 0.5]
    names = ", ".join(wanted.labels[0])
    assert done.stdout == f"{names}\t{', '.join(shares)}\ta good film\n"


def test_answers_are_written_as_lists() -> None:
    outputs = np.array([[2.0, -1.0, 1.0], [-1.0, -1.0, -1.0], [np.nan] * 3])
    batch = AnsweredBatch({"text": ["a", "b", "c"]}, NAMES, "multilabel", outputs)
    assert [*text_lines(batch)] == ["toxic 0.8808, spam 0.7311\ta", "(none)\tb", "\tc"]
    first, second, third = map(json.loads, json_lines(batch, ""))
    assert (first["labels"], second["labels"], third["labels"]) == (["toxic", "spam"], [], None)
    assert first["probabilities"] == {"toxic": 0.880797, "threat": 0.268941, "spam": 0.731059}
    columns = batch.flat()
    assert columns["labels"] == ['["toxic", "spam"]', "[]", None]
    assert columns["probability_threat"] == [0.268941, 0.268941, None]
