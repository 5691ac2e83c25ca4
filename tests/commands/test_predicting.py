"""Tables in and out of ``distill predict``, with students made up here."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.text import MASK
from pipeline_lib.exports import opening
from pipeline_lib.exports.opening import Predictor
from pipeline_lib.models.students.tokenise import KnownWords
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.tables import reader

from .running import Fails, distill

QUOTED = 'good, "very" good\nto the end'
"""A text that CSV has to quote."""


@pytest.fixture(autouse=True)
def student(monkeypatch: pytest.MonkeyPatch) -> list[list[object]]:
    """Make a student to which what has good in it is good; return what it is asked."""
    asked: list[list[object]] = []

    def predict(texts: Sequence[object]) -> np.ndarray:
        asked.append(list(texts))
        return np.array([[0.0, 2.0 if "good" in str(text) else -2.0] for text in texts], np.float32)

    opened = {
        "student": Predictor(Path("student"), ["negative", "positive"], "classification", False, predict),
        "pairs": Predictor(Path("pairs"), ["negative", "positive"], "classification", True, predict),
        "scores": Predictor(Path("scores"), ["stars"], "regression", False, lambda texts: predict(texts)[:, 1:]),
    }
    monkeypatch.setattr("pipeline_lib.exports.opening.load_student", lambda folder: opened[folder.name])
    return asked


def write_csv(name: str, rows: list[list[object]]) -> None:
    with open(name, "w", newline="") as sink:
        csv.writer(sink).writerows(rows)


def test_a_table_stays_row_for_row_in_any_form(student: list[list[object]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BATCH_ROWS", 2)
    rows = [["id", "review", "label"], [1, QUOTED, "x"], [2, " ", "y"], [3, "dull", "z"]]
    write_csv("in.csv", rows)
    kept = ["--text", "review", "--keep", "id"]
    told = distill("predict", "student", "--file", "in.csv", *kept, "--out", "out.parquet")
    assert told == "rows without a sentence, which get no answer: 1, the first is row 4\n"
    assert student == [[QUOTED], ["dull"]], "no more than a batch at a time"
    found = pq.read_table("out.parquet").to_pydict()
    assert found["review"] == [QUOTED, " ", "dull"] and found["id"] == ["1", "2", "3"]
    assert found["label"] == ["positive", None, "negative"]
    assert found["probability"] == [pytest.approx(0.880797), None, pytest.approx(0.880797)]
    assert found["probability_positive"][2] == pytest.approx(0.119203)
    again = ["--keep", "label", "--prefix", "new_", "--out", "out.jsonl"]
    distill("predict", "student", "--file", "out.parquet", *kept, *again)
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [line["label"] for line in lines] == [line["new_label"] for line in lines]
    assert lines[0]["new_probabilities"]["positive"] == pytest.approx(0.880797)
    assert lines[1] == {"review": " ", "id": "2", "label": None, "new_label": None}
    piped = Path("out.jsonl").read_text()
    distill("predict", "student", "--input-format", "jsonl", *kept, "--out", "o.csv", given=piped)
    header, first, second, _ = csv.reader(Path("o.csv").read_text().splitlines(keepends=True))
    probabilities = [f"probability_{name}" for name in ("negative", "positive")]
    assert header == ["review", "id", "label", "probability", *probabilities, "error"]
    assert first == [QUOTED, "1", "positive", "0.880797", "0.119203", "0.880797", ""]
    assert second == [" ", "2", "", "", "", "", ""]


def test_pairs_and_scores() -> None:
    Path("in.tsv").write_text("text\ttext_pair\nso\tgood\n\tdull\n")
    found = distill("predict", "pairs", "--file", "in.tsv", "--format", "jsonl").splitlines()
    first = json.loads(found[0])
    assert (first["text"], first["text_pair"], first["label"]) == ("so", "good", "positive")
    assert json.loads(found[1])["label"] is None
    distill("predict", "pairs", "so\tgood", "--out", "out.csv")
    header = '"text","text_pair","label","probability",'
    assert Path("out.csv").read_text().startswith(header)
    pq.write_table(pa.table({"text": ["good", None], "n": [1, 2]}), "in.parquet")
    told = ["--keep", "n", "--file", "in.parquet", "--out"]
    distill("predict", "scores", *told, "out.parquet")
    found = pq.read_table("out.parquet")
    assert found.to_pydict() == {"text": ["good", None], "n": [1, 2], "stars": [2.0, None]}
    assert found.schema.field("n").type == pa.int64()
    write_csv("none.csv", [["text"]])
    distill("predict", "scores", "--file", "none.csv", "--out", "none.jsonl")
    assert Path("none.jsonl").read_text() == ""


def test_kept_columns_stay_what_they_are_on_screen(fails: Fails) -> None:
    table = {"text": ["good", None], "label": ["gold", "x"], "n": [float("nan"), 2.0]}
    pq.write_table(pa.table(table), "in.parquet")
    given = ["predict", "student", "--file", "in.parquet", "--keep", "label", "--keep", "n"]
    first, second, *_ = distill(*given).splitlines()
    assert first == "positive\t0.8808\tgood\tgold\t" and second == "\t\t\tx\t2.0"
    as_json = ["--format", "jsonl"]
    assert "column 'label' is in the file already" in fails(*given, *as_json)
    found = json.loads(distill(*given, *as_json, "--prefix", "new_").splitlines()[0])
    assert (found["label"], found["new_label"], found["n"]) == ("gold", "positive", None)


@pytest.mark.parametrize(("name", "row"), [("in.txt", 2), ("in.csv", 3)])
def test_a_blank_line_stays_without_an_answer(name: str, row: int) -> None:
    Path(name).write_text("text\n" * (row - 2) + "good\n\nbad\n")
    found = distill("predict", "student", "--file", name).splitlines()
    assert found == [
        "positive\t0.8808\tgood",
        "\t\t",
        "negative\t0.8808\tbad",
        f"rows without a sentence, which get no answer: 1, the first is row {row}",
    ]
    assert distill("predict", "pairs", "", "so\tgood").splitlines()[:2] == ["\t\t\t", "positive\t0.8808\tso\tgood"]


def test_tables_are_read_as_init_reads_them() -> None:
    Path("in.csv").write_text("text;id\ngood, so;7\n\n")
    found = distill("predict", "student", "--file", "in.csv", "--keep", "id")
    assert found == "positive\t0.8808\tgood, so\t7\n"
    rows = [{"data": {"text": ["good"]}, "by": {"id": 7}}, {"data": None}]
    Path("in.json").write_text(json.dumps(rows))
    given = ["predict", "student", "--file", "in.json", "--text", "data.text", "--keep", "by.id"]
    found = distill(*given).splitlines()
    assert found[:2] == ["positive\t0.8808\tgood\t7", "\t\t\t"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"a,text\n2\n", [], "in.csv: row 2 has 1 columns, not 2"),
        (b"text\ngo\xffod\n", ["--encoding", "utf-8"], "in.csv: row 2 is not UTF-8"),
        (b"text\ngood\n", ["--encoding", "utf-9"], "encoding 'utf-9': unknown"),
        (b"text\ngood\n", ["--keep", "id"], "no column 'id'; there are 'text'. Name one of them"),
        (b"text\ngood\n", ["--text2", "text"], "--text2: this student reads one sentence"),
        (b"text,label\ngood,1\n", ["--keep", "label"], "column 'label' is in the file already"),
        (b"{}\n", ["--input-format", "jsonl"], "row 1: no column 'text'; there are none"),
        (b"good\n", ["--input-format", "lines", "--keep", "id"], "name columns of a table"),
        (b"text\ngood\n", ["--out", "out.txt"], "out.txt: give a name that ends in .parquet, .arrow, .jsonl, .csv"),
        (b"text\ngood\n", ["--out", "./in.csv"], "in.csv: the file that is read"),
    ],
)
def test_what_cannot_be_read_at_all_is_named(fails: Fails, content: bytes, options: list[str], message: str) -> None:
    Path("in.csv").write_bytes(content)
    assert message in fails("predict", "student", "--file", "in.csv", "--out", "out.csv", *options)
    assert not Path("out.csv").exists() and Path("in.csv").read_bytes() == content


UTF8 = ["--encoding", "utf-8"]
FAULTY: dict[str, tuple[bytes, int, list[str], str]] = {
    "json": (b'{"text": "good"}\n{"text": \n{"text": "bad"}\n', 2, [], "row 2 is not valid JSON"),
    "an array": (b'[{"text": "good"}, 7, {"text": "bad"}]', 2, [], "row 2 is not a JSON object"),
    "a list": (b'{"text": "good"}\n{"text": [1, 2]}\n{"text": "bad"}\n', 2, [], "row 2, column 'text' holds a list"),
    "half a character": (b'{"text": "good"}\n{"text": "\\ud83d"}\n{"text": "bad"}\n', 2, [], "half a surrogate pair"),
    "bytes in json": (b'{"text": "good"}\n{"text": "\xff"}\n{"text": "bad"}\n', 2, UTF8, "row 2 is not UTF-8"),
    "few cells": (b"text,id\ngood,1\nnone\nbad,3\n", 3, [], "row 3 has 1 columns, not 2"),
    "many cells": (b"text,id\ngood,1\na,b,2\nbad,3\n", 3, [], "row 3 has 3 columns, not 2"),
    "a quote": (b'text,id\ngood,1\n"a" b,2\nbad,3\n', 3, [], "row 3 is not valid CSV"),
    "bytes": (b"text,id\ngood,1\n\xff,2\nbad,3\n", 3, ["--encoding", "utf-8"], "row 3 is not UTF-8"),
    "tabs": (b"text\tid\ngood\t1\na\tb\t2\nbad\t3\n", 3, [], "row 3 has 3 columns, not 2"),
}
"""Three rows of which the second cannot be read, its number, options, and why."""


@pytest.mark.parametrize("kind", FAULTY)
@pytest.mark.parametrize("batch", [1, 4096])
def test_a_row_that_cannot_be_read_stays_unanswered(kind: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BATCH_ROWS", batch)
    content, number, options, why = FAULTY[kind]
    form = {"{": "jsonl", "[": "jsonl"}.get(content[:1].decode(), "csv")
    file = f"in.{'tsv' if kind == 'tabs' else form}"
    Path(file).write_bytes(content)
    command = ["predict", "student", "--file", file, *options]
    *lines, note = distill(*command).splitlines()
    assert [line.split("\t")[0] for line in lines] == ["positive", "", "negative"]
    assert why in lines[1]
    assert note.startswith(f"rows that cannot be read, which get no answer: 1. {file}: row {number}")
    assert why in note
    for out in ("out.csv", "out.parquet", "out.jsonl"):
        assert distill(*command, "--out", out) == f"{note}\n"
    rows = [*csv.DictReader(Path("out.csv").read_text().splitlines())]
    table = pq.read_table("out.parquet").to_pylist()
    objects = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    for written in (rows, table, objects):
        assert [row["label"] or None for row in written] == ["positive", None, "negative"]
        assert why in written[1]["error"]
        assert not any(row.get("error") for row in (written[0], written[2]))


def test_a_kept_value_that_is_no_text_or_a_line_that_is_no_pair_is_a_fault_of_its_row() -> None:
    Path("in.jsonl").write_text('{"text": "good", "k": ["\\ud83d"]}\n{"text": "bad", "k": 1}\n')
    output = distill("predict", "student", "--file", "in.jsonl", "--keep", "k", "--out", "o.jsonl")
    assert "in.jsonl: row 1, column 'k' holds half a surrogate pair" in output
    rows = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()]
    assert [(row["label"], row["k"]) for row in rows] == [(None, None), ("negative", 1)]
    Path("in.txt").write_text("so\tgood\nalone\nso\tbad\n")
    *lines, note = distill("predict", "pairs", "--file", "in.txt").splitlines()
    assert [line.split("\t")[0] for line in lines] == ["positive", "", "negative"]
    assert note.startswith("rows that cannot be read, which get no answer: 1. row 2: 'alone'")


def test_answers_to_unknown_words_are_counted() -> None:
    tokenizer = build_tokenizer(["good", "."], lowercase=True)
    words = KnownWords(tokenizer, tokenizer.token_to_id(MASK), 9)
    Path("in.txt").write_text("good\nzzz.\n\nzzz good\n🎉\n")
    student = replace(opening.load_student(Path("student")), words=words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline_lib.exports.opening.load_student", lambda folder: student)
        output = distill("predict", "student", "--file", "in.txt").splitlines()
    assert output[-2:] == [
        "rows without a sentence, which get no answer: 1, the first is row 3",
        "rows without a word that the student knows, whose answers do not depend on what they "
        "say: 2, the first is row 2",
    ]
