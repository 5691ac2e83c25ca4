"""Answers out of files: what a row may say, how it is joined, and what is refused."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.probabilities import softmax
from pipeline_lib.outputs.files.answers import Answers
from pipeline_lib.outputs.files.keyed_table import read_texts
from pipeline_lib.outputs.files.lookup_pass import AnswerPass
from pipeline_lib.outputs.files.requests import requests_of
from pipeline_lib.outputs.precompute import list_unanswered
from pipeline_lib.params import Task
from pipeline_lib.shards.columns import MASKED, matrix
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.shard_sets import ShardSet, write_shard
from tests.kit.made_up import made_up_task

from .answer_files import TASK, Lines, gather_answers, lines, read_answers, score_task, settings, write_rows
from .provider_lines import chat


def probs_of(path: Path, task: Task = TASK, **changes: Any) -> dict[int, list[float]]:
    found = read_answers([path], settings(**changes), task)
    return dict(zip(found.keys.tolist(), softmax(found[:]).round(3).tolist(), strict=True))


def one(path: Path, row: dict[str, Any], **changes: Any) -> list[float]:
    [found] = probs_of(lines(path, [{"text": "a film"} | row]), **changes).values()
    return found


@pytest.mark.parametrize(
    ("row", "changes", "wanted"),
    [
        ({"probs": {"yes": 0.8, "no": 0.2}}, {}, [0.2, 0.8]),
        ({"probs": {" Yes": 0.8}}, {}, [0.2, 0.8]),
        ({"probs": {"yes": 0}}, {}, [1.0, 0.0]),
        ({"probs": [0.8, 0.2]}, {"classes": ["yes", "no"]}, [0.2, 0.8]),
        ({"logits": [0.0, math.log(3)]}, {"classes": ["no", "yes"]}, [0.25, 0.75]),
        ({"logits": {"yes": math.log(3), "no": 0.0}}, {}, [0.25, 0.75]),
        ({"label": "yes"}, {}, [0.05, 0.95]),
        ({"label": 0}, {"classes": ["yes", "no"]}, [0.05, 0.95]),
        # Tokens that are no class have a tenth: of all classes that are named, nothing is left.
        ({"probs": {"yes": 0.6, "no": 0.3}}, {}, [0.333, 0.667]),
    ],
)
def test_every_form_of_an_answer(
    tmp_path: Path, row: dict[str, Any], changes: dict[str, Any], wanted: list[float]
) -> None:
    assert one(tmp_path / "a.jsonl", row, **changes) == pytest.approx(wanted, abs=0.001)


def test_a_short_list_of_classes_leaves_the_rest_to_the_others(tmp_path: Path) -> None:
    labels = {name: [name] for name in "abcde"}
    path = lines(tmp_path / "a.jsonl", [{"text": "x", "probs": {"b": 0.6, "d": 0.1}}])
    [found] = probs_of(path, made_up_task(labels=labels)).values()
    assert found == pytest.approx([0.1, 0.6, 0.1, 0.1, 0.1])


def test_the_same_answers_in_every_format(tmp_path: Path) -> None:
    texts, probs = ["a film", "so, it is"], [[0.9, 0.1], [0.4, 0.6]]
    table = pa.table({"text": texts, "probs": probs})
    said = {"classes": json.dumps(["yes", "no"]), "provenance": json.dumps({"model": "m"})}
    table = table.replace_schema_metadata(said)
    pq.write_table(table, tmp_path / "a.parquet")
    write_shard(tmp_path / "b.arrow", table)
    with pa.OSFile(str(tmp_path / "c.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as w:
        w.write_table(table)
    with (tmp_path / "d.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "probs.yes", "probs.no"])
        writer.writerows([text, *own] for text, own in zip(texts, probs, strict=True))
    rows = [{"text": t, "probs": own} for t, own in zip(texts, probs, strict=True)]
    lines(tmp_path / "e.jsonl", [{"metadata": {"classes": ["yes", "no"]}}, *rows])
    wanted = probs_of(tmp_path / "a.parquet")
    assert sorted(wanted.values()) == [[0.1, 0.9], [0.6, 0.4]]
    for name in ("b.arrow", "c.arrow", "d.csv", "e.jsonl"):
        assert probs_of(tmp_path / name) == wanted, name
    found = read_answers([tmp_path / "a.parquet"], settings(provenance={"terms": "t"}), TASK)
    assert found.provenance == {"model": "m", "terms": "t"}


def test_columns_as_other_tools_write_them(tmp_path: Path) -> None:
    label = {"label": {"names": ["yes", "no"], "_type": "ClassLabel"}}
    said = {"huggingface": json.dumps({"info": {"features": label}})}
    table = pa.table({"text": ["a", "b"], "label": [0, 1]}).replace_schema_metadata(said)
    pq.write_table(table, tmp_path / "a.parquet")
    assert sorted(probs_of(tmp_path / "a.parquet").values()) == [[0.05, 0.95], [0.95, 0.05]]
    shares = pa.array([[("yes", 0.9), ("no", 0.1)]], pa.map_(pa.string(), pa.float64()))
    structs = pa.array([{"yes": 0.9, "no": None}])
    for name, column in (("b", shares), ("c", structs)):
        pq.write_table(pa.table({"text": ["a"], "probs": column}), tmp_path / f"{name}.parquet")
        assert list(probs_of(tmp_path / f"{name}.parquet").values()) == [[0.1, 0.9]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"text": "a", "probs": {"maybe": 1.0}}], r"row 1: class 'maybe' is unknown; .* no, yes"),
        ([{"text": "a", "logits": {"yes": 1.0}}], r"row 1: no logit for no\. Give one for each"),
        ([{"text": "a", "probs": [0.1, 0.9]}], r"row 1: a list of numbers, and nothing says which"),
        ([{"text": "a", "probs": {"yes": 1.2}}], r"row 1: \[1\.2\] are not probabilities"),
        ([{"text": "a", "label": 1}], r"class 1 is unknown.* A number needs `classes`"),
        ([{"text": "a", "label": "yes", "probs": {}}], r"found probs and label\. Keep one"),
        ([{"text": " ", "label": "yes"}], r"row 1: `text` is missing"),
        ([{"text": "a"}], r"row 1: expected one of logits, probs, label, found none"),
        ([{"text": "a", "label": "yes", "weight": -1}], r"`weight` is below 0"),
        ([{"text": "a", "label": "yes", "weight": 1e39}], r"`weight` is above 1e\+06"),
        ([{"text": "a", "label": "yes", "weight": "nan"}], r"weight is 'nan', not a finite"),
        (
            [{"text": t, "label": "yes", "weight": 0} for t in "ab"],
            r"row 1: `weight` is 0, as for all 2 answers to learn from",
        ),
        ([{"text": "a", "probs": {"yes": 0, "no": 0}}], r"row 1: the probabilities of all classes"),
        ([{"text": "a", "logits": {"yes": 1e300, "no": 0}}], r"row 1: a value is not a finite"),
        ([{"text": "a", "text_pair": "b", "label": "yes"}], r"row 1: 2 texts, but the task reads 1"),
        ([{"text": "a", "logits": {"yes": "nan", "no": 1}}], r"not a finite number"),
        (
            [{"text": "a", "label": "yes"}, {"text": " a ", "label": "no"}],
            r"a\.jsonl: row 2: the same text as .*a\.jsonl: row 1, with another answer",
        ),
        ([{"metadata": {"classes": ["no", "ja"]}}], r"class 'ja' is unknown"),
        ([{"metadata": {"classes": ["no"]}}], r"class 'yes' is missing from no"),
        ([{"text": "a", "error": "refused"}], r"no answers: of 1 rows, refused \(1\)\. Nothing"),
    ],
)
def test_a_faulty_row_is_named(tmp_path: Path, rows: Lines, message: str) -> None:
    with pytest.raises(PotstillError, match=message):
        gather_answers([lines(tmp_path / "a.jsonl", rows)], settings(), TASK)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_faulty_weights_in_tables_are_named(tmp_path: Path, suffix: str) -> None:
    for weights, message in (
        ([0.0, 0.0], "row [12]: `weight` is 0"),
        ([1.0, -2.0], "row [23]: `weight` is below 0"),
        ([1.0, math.inf], "row [23]: weight is .*inf.*not a finite number"),
    ):
        path = tmp_path / f"a.{suffix}"
        table = pa.table({"text": ["a", "b"], "label": ["yes", "no"], "weight": weights})
        pq.write_table(table, path) if suffix == "parquet" else pa_csv.write_csv(table, path)
        with pytest.raises(PotstillError, match=message):
            gather_answers([path], settings(), TASK)


def test_why_there_are_no_answers_is_said_in_one_line(tmp_path: Path) -> None:
    body = {"error": {"message": "Invalid\nmodel: m"}}
    failed = [{"custom_id": f"{n:016x}", "response": {"status_code": 400, "body": body}} for n in range(240)]
    path = tmp_path / "a.jsonl"
    with pytest.raises(PotstillError) as caught:
        gather_answers([lines(path, failed)], settings(), TASK)
    assert str(caught.value) == (
        "a.jsonl: no answers: of 240 rows, failed or refused: Invalid model: m (240). Nothing was stored: have the "
        "teacher answer again with one of no, yes, and put its file here; `distill teacher requests --format` asks for "
        "structured output."
    )
    replies = [chat(f"{n:016x}", f"class {n}") for n in range(3)]
    with pytest.raises(PotstillError, match=r"of 243 rows, failed.* \(240\); neither JSON.* and the like \(3\)"):
        gather_answers([lines(path, failed + replies)], settings(), TASK)
    with pytest.raises(PotstillError, match=r"no answers: there are no rows\. Put"):
        gather_answers([lines(path, [{"metadata": {}}])], settings(), TASK)


def test_bare_labels_are_said(tmp_path: Path) -> None:
    rows: Lines = [{"text": "a", "label": "yes"}, {"text": "b", "probs": {"yes": 0.7}}]
    kind = Answers(settings(), TASK)
    found = read_answers([lines(tmp_path / "a.jsonl", rows)], settings(), TASK)
    [line] = kind.bare_labels(found)
    assert line.startswith("1 bare labels, without probabilities: each counts as 0.950")
    assert kind.bare_labels(read_answers([lines(tmp_path / "b.jsonl", rows[1:])], settings(), TASK)) == []


def test_rows_without_an_answer_are_counted(tmp_path: Path) -> None:
    rows: Lines = [
        {"text": "a", "label": "yes"},
        {"text": "a", "label": "yes"},
        {"text": "a", "error": "timed out"},
        {"text": "b", "error": "timed out", "label": None},
        {"text": "d", "label": "no", "weight": 2.5},
    ]
    found = read_answers([lines(tmp_path / "a.jsonl", rows)], settings(), TASK)
    wanted = {"rows": 5, "answered": 2, "repeated": 1, "errors": 2}
    assert found.counts == wanted and found.errors == {"timed out": 2}
    assert sorted(found.weights.tolist()) == [1.0, 2.5]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_rows_are_joined_by_their_key_alone(tmp_path: Path, name: str) -> None:
    rows = [{"key": row["key"], "label": "yes"} for row in requests_of([[["a film"]]], None)]
    path = lines(tmp_path / name, rows)
    if name == "a.csv":
        path.write_text(f"key,label\n{rows[0]['key']},yes\n")
    assert probs_of(path) == probs_of(lines(tmp_path / "b.jsonl", [{"text": "a film ", "label": "yes"}]))


def test_two_answers_are_found_in_two_files(tmp_path: Path) -> None:
    one = [{"text": f"text {n}", "probs": {"yes": (n + 1) / 100}} for n in range(50)]
    path = lines(tmp_path / "a.jsonl", one)
    # The same again, of a text with another weight, and of one with another answer.
    same = lines(tmp_path / "b.jsonl", [{"metadata": {}}, one[7], one[7] | {"text": " text 7 "}])
    found = read_answers([path, same], settings(), TASK)
    assert (found.counts["answered"], found.counts["repeated"]) == (50, 2)
    wanted = read_answers([path], settings(), TASK)
    assert np.array_equal(found[:], wanted[:]) and (np.diff(found.keys) > 0).all()
    for other in ({"weight": 2.0}, {"probs": {"yes": 0.5}}):
        again = lines(tmp_path / "c.jsonl", [{"text": "new", "label": "no"}, one[9] | other])
        with pytest.raises(PotstillError, match=r"c\.jsonl: row 2: the same .*a\.jsonl: row 10,"):
            read_answers([path, same, again], settings(), TASK)


def test_a_constant_file_is_refused(tmp_path: Path) -> None:
    rows = [{"text": f"text {n}", "probs": {"yes": 0.9}} for n in range(40)]
    with pytest.raises(PotstillError, match=r"a\.jsonl: constant: the same output for 40"):
        gather_answers([lines(tmp_path / "a.jsonl", rows)], settings(), TASK)
    assert len(gather_answers([lines(tmp_path / "b.jsonl", rows[:31])], settings(), TASK).keys) == 31


def test_scores_are_taken_as_they_are(tmp_path: Path) -> None:
    task = score_task()
    rows = [{"text": "a", "label": 2.5}, {"text": "b", "logits": [4.0]}]
    found = read_answers([lines(tmp_path / "a.jsonl", rows)], settings(), task)
    assert sorted(found[:][:, 0].tolist()) == [2.5, 4.0]
    lines(tmp_path / "b.jsonl", [{"text": "a", "probs": {"yes": 1}}])
    with pytest.raises(PotstillError, match="label is a score, and this row has probs"):
        read_answers([tmp_path / "b.jsonl"], settings(), task)


def texts_of(inputs: ShardSet, mask: str = "[MASK]") -> list[list[list[str]]]:
    return [read_texts(rows, mask) for rows in inputs.tables()]


def test_answers_are_found_by_content(tmp_path: Path, store_home: Path) -> None:
    rules = {
        "words": [["so", "it", "is"], ["a", "[MASK]"], ["new"]],
        "rules": pa.array([[0, 0, 0], [0, MASKED], [0]], pa.list_(pa.int8())),
    }
    inputs = write_rows(tmp_path / "in", ["so it is", "a [MASK]", "new"], [1, None, None], **rules)
    rows: Lines = [
        {"text": "a ___", "label": "no"},
        {"text": "nobody asked", "label": "no"},
        {"text": "so it is ", "label": "yes", "weight": 3},
    ]
    own = settings(mask="___", provenance={"terms": "free"})
    gather_answers([lines(tmp_path / "a.jsonl", rows)], own, TASK, tmp_path / "llm")
    found = AnswerPass.of(tmp_path / "llm")
    manifest, _ = run_pass(found, inputs, tmp_path / "out", LocalEngine(1))
    assert manifest.kind == "logits" and manifest.counts == {"answered": 2, "unanswered": 1}
    assert manifest.made_from["provenance"] == {"terms": "free"}
    outputs = ShardSet.open(tmp_path / "out")
    table = outputs.to_table()
    assert matrix(table["logits"]).argmax(1)[:2].tolist() == [1, 0]
    assert np.isnan(matrix(table["logits"])[2]).all()
    assert table["weight"].to_pylist() == [3.0, 1.0, 1.0]
    assert list_unanswered(inputs, outputs, own.mask) == 1
    listed = json.loads((tmp_path / "out/unanswered.jsonl").read_text())
    assert (listed["shard"], listed["row"], listed["text"]) == ("b000-i000.arrow", 2, "new")
    # Asked for: what has no answer, with the teacher's sign, by the key of the list.
    answers = read_answers([tmp_path / "a.jsonl"], own, TASK)
    assert list(requests_of(texts_of(inputs, own.mask), answers)) == [{"key": listed["key"], "text": "new"}]
    texts = [row["text"] for row in requests_of(texts_of(inputs, own.mask), None)]
    assert texts == ["so it is", "a ___", "new"]
