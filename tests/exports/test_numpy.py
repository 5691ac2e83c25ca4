"""Students in numpy answer as they do in torch, and need nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pipeline_lib
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.probabilities import softmax
from pipeline_lib.exports.numpy_export import export_numpy
from pipeline_lib.exports.numpy_student import ARCHITECTURES, Student
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.student import load_student

from .students import VALUES, sample, write_encoder, write_student

NAMES = [name for name, own in VALUES.items() if own["architecture"] in ARCHITECTURES]


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_answers_are_those_of_torch(name: str, pair: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_lib.exports.export_source.temperature_of", lambda _: 0.5)
    monkeypatch.setattr("pipeline_lib.exports.numpy_student.BATCH", 5)
    folder = write_student(tmp_path / "student", name, pair, ["no", "yes", "neither"])
    export_numpy(folder, tmp_path / "out")
    student, given = Student(tmp_path / "out"), sample(pair)
    wanted = load_student(folder).logits(given) / 0.5
    np.testing.assert_allclose(student.logits(given), wanted, atol=2e-6)
    np.testing.assert_allclose(student.predict(given).probabilities, softmax(wanted), atol=1e-6)
    np.testing.assert_allclose(student.logits(given[3:4]), wanted[3:4], atol=2e-6)
    assert student.logits([]).shape == (0, 3)
    assert (student.label_names, student.is_pair) == (["no", "yes", "neither"], pair)
    with pytest.raises(PotstillError, match="describes a distillery_student_numpy"):
        load_student(tmp_path / "out")


def test_scores_and_sentence_vectors(tmp_path: Path) -> None:
    folder = write_student(tmp_path / "student", "cnn", False, ["stars"])
    export_numpy(folder, tmp_path / "scores")
    given = sample(False)
    wanted = load_student(folder).logits(given)
    np.testing.assert_allclose(Student(tmp_path / "scores").predict(given).logits, wanted, atol=2e-6)
    write_encoder(tmp_path / "encoder")
    export_numpy(tmp_path / "encoder", tmp_path / "vectors")
    wanted = load_encoder(tmp_path / "encoder").encode(given)
    np.testing.assert_allclose(Student(tmp_path / "vectors").encode(given), wanted, atol=2e-6)


def test_nothing_else_is_needed(tmp_path: Path) -> None:
    folder = write_student(tmp_path / "student", "bilstm", True, ["no", "yes"])
    export_numpy(folder, tmp_path / "out")
    code = (
        "import runpy, sys; sys.argv[1:] = ['a good film\\tdull']; runpy.run_path('student.py', run_name='__main__'); "
        "print({'torch', 'safetensors', 'pipeline_lib', 'onnxruntime'} & {*sys.modules})"
    )
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "out", env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer, loaded = done.stdout.splitlines()
    label, probability, text = answer.split("\t", 2)
    (wanted,) = softmax(load_student(folder).logits([("a good film", "dull")]))
    assert (label, text) == (["no", "yes"][wanted.argmax()], "a good film\tdull")
    assert float(probability) == pytest.approx(wanted.max(), abs=1e-4)
    assert loaded == "set()"
    command = [sys.executable, "student.py", "so\tso", "a good film"]
    done = subprocess.run(command, cwd=tmp_path / "out", env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout.count("\n") == 1
    assert done.stderr == "'a good film': not a pair. Separate the two sentences by a tab.\n"
    folder = write_student(tmp_path / "many", "bilstm", False, ["toxic", "threat", "spam"], kind="multilabel")
    export_numpy(folder, tmp_path / "labels")
    command = [sys.executable, "student.py", "a good film"]
    done = subprocess.run(command, cwd=tmp_path / "labels", env=bare, capture_output=True, text=True, check=True)
    wanted = pipeline_lib.load_student(folder).predict(["a good film"])
    shares = ", ".join(f"{share:.4f}" for share in wanted.probabilities[0] if share > 0.5)
    assert done.stdout == f"{', '.join(wanted.labels[0])}\t{shares}\ta good film\n"


def test_a_transformer_is_refused(tmp_path: Path) -> None:
    folder = write_student(tmp_path / "student", "dse", False, ["no", "yes"])
    with pytest.raises(PotstillError, match=r"a dse student cannot be exported to numpy.*--to onnx"):
        export_numpy(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
