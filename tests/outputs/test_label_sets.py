"""A teacher's answers of several labels: in files, in replies of language models."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import sigmoid
from pipeline_lib.outputs.files.answers import Answers
from pipeline_lib.outputs.files.checks import check_order, check_related
from pipeline_lib.outputs.health import check_agreement
from tests.kit.made_up import made_up_task, task_of_labels

from .answer_files import lines, read_answers, settings

TASK = task_of_labels()
NAMES = TASK.label_names


def shares_of(path: Path, **changes: Any) -> np.ndarray:
    """Return the probabilities of a file's answers, (rows, labels)."""
    table = read_answers([path], settings(**changes), TASK)
    return sigmoid(table[:])[np.argsort(table.places)].round(4)


def test_answers_of_every_form(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "label": ["toxic", "Spam"]},
        {"text": "b", "label": []},
        {"text": "c", "label": "toxic, threat"},
        {"text": "d", "probs": {"toxic": 0.9, "threat": 0.8, "spam": 0.0}},
        {"text": "e", "logits": {"threat": 2.0, "spam": -1.0, "toxic": 0.0}},
        {"text": "f", "error": "refused"},
    ]
    found = shares_of(lines(tmp_path / "a.jsonl", rows))
    assert found[:4].tolist() == [[0.95, 0.05, 0.95], [0.05, 0.05, 0.05], [0.95, 0.95, 0.05], [0.9, 0.8, 0.0001]]
    assert found[4] == pytest.approx([0.5, 0.8808, 0.2689])


def test_lists_of_numbers_follow_the_files_classes(tmp_path: Path) -> None:
    rows = [{"metadata": {"classes": ["spam", "toxic", "threat"]}}]
    rows += [{"text": "a", "probs": [0.1, 0.9, 0.8]}]
    assert shares_of(lines(tmp_path / "a.jsonl", rows)).tolist() == [[0.9, 0.8, 0.1]]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_lists_of_names_in_tables(tmp_path: Path, ending: str) -> None:
    labels = [["toxic", "spam"], ["threat"], []]
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"text": ["a", "b", "c"], "label": labels}), path)
    else:
        cells = zip("abc", ["toxic|spam", "threat", "[]"], strict=True)
        path.write_text("text,label\n" + "".join(f"{a},{b}\n" for a, b in cells))
    assert (shares_of(path) > 0.5).tolist() == [[True, False, True], [False, True, False], [False, False, False]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"label": ["toxic", "rude"]}, "class 'rude' is unknown; the task's are toxic, threat"),
        ({"label": "toxic, rude"}, "class 'toxic, rude' is unknown"),
        ({"probs": {"toxic": 0.5}}, "nothing is said of threat, spam. Give a number for each"),
        ({"probs": {"toxic": 1.5, "threat": 0, "spam": 0}}, r"not probabilities \(each from 0"),
        ({"probs": [0.5, 0.5, 0.5]}, "nothing says which class is which"),
    ],
)
def test_faults_name_the_row(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(PotstillError, match=rf"row 1: .*{message}"):
        shares_of(lines(tmp_path / "a.jsonl", [{"text": "a"} | row]))
    rows = [{"text": "a", "label": ["no", "yes"]}]
    with pytest.raises(PotstillError, match="is unknown; the task's are no, yes"):
        read_answers([lines(tmp_path / "a.jsonl", rows)], settings(), made_up_task())


def test_facts_count_each_label(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": ["toxic", "spam"]}, {"text": "b", "label": []}]
    table = read_answers([lines(tmp_path / "a.jsonl", rows)], settings(), TASK)
    facts = Answers(settings(), TASK).described(table)
    assert facts[1:3] == ["labels: toxic 1, threat 0, spam 1; none 1", "labels per text: mean 1.00"]


def answers_like(marks: np.ndarray, noise: float) -> np.ndarray:
    draw = np.random.default_rng(2)
    flipped = draw.random(marks.shape) < noise
    return np.where((marks == 1) ^ flipped, 2.0, -2.0) + draw.normal(0, 0.1, marks.shape)


def test_mixed_up_rows_are_found() -> None:
    marks = (np.random.default_rng(1).random((300, 3)) < [0.4, 0.2, 0.5]).astype(np.uint8)
    outputs = answers_like(marks, 0.05)
    where = "logits of b000", "Do it."
    check_agreement(marks, outputs, np.arange(300), 0.9, "multilabel", *where)
    with pytest.raises(PotstillError, match="with other labels: rows"):
        check_agreement(marks, np.roll(outputs, 1, 0), np.arange(300), 0.9, "multilabel", *where)
    assert 0.1 < KINDS["multilabel"].chance_agreement(marks, outputs) < 0.5
    check_related(marks, outputs, TASK, "a.jsonl")
    with pytest.raises(PotstillError, match="shifted or mixed up answers could reach"):
        check_related(marks, np.roll(outputs, 1, 0), TASK, "a.jsonl")


def test_a_shift_of_one_row_is_found(tmp_path: Path) -> None:
    marks = (np.random.default_rng(1).random((300, 3)) < 0.5).astype(np.uint8)
    rows = [
        {"text": f"text {n}", "label": [name for name, m in zip(NAMES, one, strict=True) if m]}
        for n, one in enumerate(marks)
    ]
    table = read_answers([lines(tmp_path / "a.jsonl", rows)], settings(), TASK)
    order = np.argsort(table.places)
    check_order(table, marks, order, TASK)
    with pytest.raises(PotstillError, match=r"one row (up|down) better"):
        check_order(table, np.roll(marks, 1, axis=0), order, TASK)
