"""Texts into ``distill predict`` and ``explain``, with a student made up here."""

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from ruamel.yaml import YAML
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from pipeline_lib import cli
from pipeline_lib.base.files import write_json
from pipeline_lib.models.folders import MODEL_TYPE
from pipeline_lib.models.students.tokenise import known_words

from .running import PARAMS, Fails, distill, failing, write_params


@pytest.fixture(autouse=True)
def student(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("student").mkdir()
    write_json(Path("student/config.json"), {"model_type": MODEL_TYPE})

    def logits(texts: Sequence[str]) -> np.ndarray:
        return np.array([[0.0, 2.0 if "good" in text else -2.0] for text in texts], np.float32)

    # Without an unknown word it knows everything.
    tokenizer = Tokenizer(WordLevel({"a": 0}, "a"))
    reader = SimpleNamespace(max_words=9, words=known_words(tokenizer, 9))
    own = {"label_names": ["negative", "positive"], "is_pair": False}
    own["kind"] = "classification"
    student = SimpleNamespace(logits=logits, tokenizer=tokenizer, reader=reader, **own)
    monkeypatch.setattr("pipeline_lib.models.students.student.load_student", lambda folder: student)


def test_arguments() -> None:
    found = distill("predict", "student", "so good", "so bad")
    assert found == "positive\t0.8808\tso good\nnegative\t0.8808\tso bad\n"


def test_blank_lines_of_standard_input_stay() -> None:
    found = distill("predict", "student", given="good\n\nbad\n").splitlines()
    assert found[:3] == ["positive\t0.8808\tgood", "\t\t", "negative\t0.8808\tbad"]


def test_bytes_without_utf8_name_the_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # As the system hands them to Python, in an argument or in a pipe of the C locale.
    assert "sentence 2: not UTF-8" in failing(monkeypatch, capsys, "predict", "student", "good", "go\udcffod")
    for errors in ("strict", "surrogateescape"):
        lines = io.TextIOWrapper(io.BytesIO(b"good\n\xff\n"), "utf-8", errors)
        monkeypatch.setattr(sys, "stdin", lines)
        monkeypatch.setattr(sys, "argv", ["distill", "predict", "student", "--encoding", "utf-8"])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert not caught.value.code, "the other rows are answered"
        printed = capsys.readouterr()
        assert printed.out.startswith("positive\t0.8808\tgood\n\t\t(standard input: row 2")
        assert "get no answer: 1. standard input: row 2 is not UTF-8" in printed.err


@pytest.fixture
def teacher(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a teacher that finds everything negative, without a doubt."""

    def predict(texts: Sequence[str], *_: int) -> np.ndarray:
        return np.array([[9.0, 0.0] for _ in texts], np.float32)

    own = SimpleNamespace(
        predict=predict,
        label_names=["negative", "positive"],
        model=SimpleNamespace(config=SimpleNamespace(to_dict=dict)),
        pieces=SimpleNamespace(mask_sign="<mask>"),
    )
    target = "pipeline_lib.models.serving.load_teacher"
    monkeypatch.setattr(target, lambda *_: own)
    Path("teacher").mkdir()
    Path("teacher/config.json").write_text("{}")
    return Path("teacher")


@pytest.mark.parametrize("by", ["student", "teacher"])
def test_every_line_says_who_answered_it(teacher: Path, by: str) -> None:
    # The student is 0.88 sure of everything.
    options = ["--threshold", "0.9" if by == "teacher" else "0.8", "--teacher", str(teacher)]
    label, share = ("negative", "0.9999") if by == "teacher" else ("positive", "0.8808")
    found = distill("predict", "student", *options, "so good")
    assert found == f"{label}\t{share}\t{by}\tso good\n"
    found = json.loads(distill("predict", "student", *options, "good", "--format", "jsonl"))
    assert (found["answered_by"], found["label"]) == (by, label)
    assert found["logits"] == ([9.0, 0.0] if by == "teacher" else [0.0, 2.0])
    assert sum(found["probabilities"].values()) == pytest.approx(1.0, abs=1e-5)


def test_what_cannot_be_routed_is_refused(monkeypatch: pytest.MonkeyPatch, fails: Fails) -> None:
    for options, message in (
        (["--teacher", "x"], "--teacher: no rows are passed on to it"),
        (["--route", "0.3", "--threshold", "0.5"], "give one of them"),
        (["--route", "0.3"], "student: it was not compared with its teacher on dev"),
        (["--threshold", "0.5"], "Name it with --teacher"),
        (["--threshold", "0.5", "--teacher", "absent"], "absent: no model here"),
    ):
        assert message in fails("predict", "student", "good", *options)
    student = sys.modules["pipeline_lib.models.students.student"].load_student(Path("student"))
    monkeypatch.setattr(student, "label_names", ["score"])
    monkeypatch.setattr(student, "kind", "regression")
    found = fails("predict", "student", "good", "--route", "0.3")
    assert "student: a score, which has no confidence to route by" in found


def test_explaining_shows_a_number_per_word_and_model(teacher: Path) -> None:
    found = distill("explain", "student", "good film", "--teacher", str(teacher))
    rows = [line.split() for line in found.splitlines() if line.strip()]
    assert rows[0] == ["Masked", "teacher", "teacher", "student"]
    assert ["nothing", "negative", "1.000", "positive", "0.881"] in rows
    # Without its word the student is as sure of the other class.
    assert ["good", "+0.000", "+0.000", "negative"] in rows
    assert ["film", "+0.000", "+0.000"] in rows
    (found,) = json.loads(distill("explain", "student", "good film", "--baseline", "student", "--json"))
    assert found["models"]["student"]["masked_labels"] == ["negative", "positive"]


def test_a_teacher_without_a_model_is_left_out(fails: Fails) -> None:
    teachers = YAML(typ="safe").load(PARAMS.read_text())["teachers"]
    answers = {"kind": "answers", "files": ["a.csv"], "classes": None}
    answers |= {"mask": "[MASK]", "provenance": {}}
    llm = {"model": None, "max_length": None, "tasks": None, "data": None, "tuning": answers}
    found = {"llm": llm, **teachers}
    methods = YAML(typ="safe").load(PARAMS.read_text())["methods"]
    own = {"bilstm": methods["bilstm"] | {"tasks": None}}
    write_params(teachers=found, methods=own, joint={}, encoders={})
    folder = "data/students/movies/bilstm/1"
    write_json(Path(folder) / "config.json", {"model_type": MODEL_TYPE})
    (explained,) = json.loads(distill("explain", folder, "good film", "--json"))
    assert list(explained["models"]) == ["bilstm"]
    refused = fails("predict", folder, "good", "--threshold", "0.9")
    assert f"{folder}: its teacher is answers in files, and cannot" in refused


def test_what_is_not_there_is_an_error(fails: Fails) -> None:
    assert "absent.txt: not found" in fails("predict", "student", "--file", "absent.txt")
    assert "absent: no such folder" in fails("predict", "absent", "x")
