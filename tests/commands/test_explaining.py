"""``distill explain`` on texts that are longer than what the models read."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline_lib.base.files import write_json
from pipeline_lib.models.students.student import load_student
from pipeline_lib.models.teacher import load_classifier, load_teacher
from tests.exports.students import MAX_WORDS, WORDS, write_student
from tests.kit.pretrained import write_model

from .running import distill

TEXT = " ".join(WORDS[n % 4] for n in range(300))


@pytest.fixture
def teacher(world: Path) -> str:
    """Write a classifier that reads 12 word pieces: ten words between its signs."""
    folder = write_model(Path("teacher"), "bert")
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model, _ = load_classifier(folder, ["no", "yes"])
    model.save_pretrained(folder)
    write_json(folder / "training.json", {"max_length": 12})
    return "teacher"


def test_what_nobody_reads_is_counted_and_not_computed(teacher: str) -> None:
    write_student(Path("student"), "bilstm", False, ["no", "yes"])
    output = distill("explain", "student", TEXT, "--teacher", teacher)
    rows = [line for line in output.splitlines() if line.strip()]
    assert len([row for row in rows if "not read" in row]) == 1, "the teacher's tenth word"
    assert rows[-2:] == [
        f"The text has 300 words. Of these are read by: teacher teacher 10, student {MAX_WORDS}.",
        f"Nobody reads the last 290 words of the text, which begin with {WORDS[2]!r}.",
    ]
    [explanation] = json.loads(distill("explain", "student", TEXT, "--teacher", teacher, "--json"))
    read = {name: one["words_read"] for name, one in explanation["models"].items()}
    assert read == {"teacher teacher": [10], "student": [MAX_WORDS]}
    assert explanation["models"]["student"]["changes"][MAX_WORDS:] == [None] * (300 - MAX_WORDS)
    short = distill("explain", "student", "a good film", "--teacher", teacher)
    assert "read" not in short


@pytest.mark.parametrize("name", ["bilstm", "bert", "dse", "biattentive-pieces"])
@pytest.mark.parametrize("pair", [False, True])
def test_masking_what_is_not_read_changes_nothing(tmp_path: Path, name: str, pair: bool) -> None:
    student = load_student(write_student(tmp_path / "student", name, pair, ["no", "yes"]))
    words = TEXT.split()[:24]
    text = (" ".join(words), " ".join(words[::-1])) if pair else " ".join(words)
    ends = student.reader.characters_read(text)
    sentences = text if pair else (text,)
    assert all(0 < end < len(part) for end, part in zip(ends, sentences, strict=True))
    cut = tuple(part[:end] for part, end in zip(sentences, ends, strict=True))
    wanted = student.logits([text])
    np.testing.assert_allclose(student.logits([cut if pair else cut[0]]), wanted, atol=1e-6)
    for side, end in enumerate(ends):
        # One word less is read, and matters.
        shorter = sentences[side][:end].rpartition(" ")[0]
        changed = (*cut[:side], shorter, *cut[side + 1 :])
        assert np.abs(student.logits([changed if pair else shorter]) - wanted).max() > 1e-7


def test_a_teacher_reads_as_far_as_its_pieces(teacher: str) -> None:
    model = load_teacher(Path(teacher), "cpu", "float32")
    ends = model.pieces.characters_read(TEXT, 12)
    outputs = model.predict([TEXT, TEXT[: ends[0]]], 12, 1000)
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-6)
