"""Flat files: their columns, and that other people's tools open them in one line."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.filters import Filter
from pipeline_lib.inspection.flat import FlatRows
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.shards.columns import list_column
from pipeline_lib.tables import writer
from pipeline_lib.tables.writer import write_tables

from .made_up import TASK, TEACHER, made_up_transfer, sentence, transfer_table, write_set

NAMES = ["negative", "positive"]


@pytest.fixture
def flat(tmp_path: Path) -> FlatRows:
    layout = Layout(tmp_path / "data")
    made_up_transfer(layout)
    rows = JoinedRows.open(layout.transfer(TASK, "full"))
    return FlatRows(rows, NAMES, Filter(), lambda batch: -batch.logits)


@pytest.fixture
def parquet(flat: FlatRows, tmp_path: Path) -> str:
    path = tmp_path / "flat.parquet"
    assert write_tables(path, flat.tables(), NAMES) == 9
    return str(path)


def in_every_form(flat: FlatRows, folder: Path) -> list[dict[str, Any]]:
    for ending in ("parquet", "jsonl", "csv"):
        write_tables(folder / f"flat.{ending}", flat.tables(), NAMES)
    one = pq.read_table(folder / "flat.parquet").to_pylist()
    other = [json.loads(line) for line in (folder / "flat.jsonl").read_text().splitlines()]
    with open(folder / "flat.csv", newline="") as file:
        third = list(csv.DictReader(file))
    assert [row["id"] for row in one] == [row["id"] for row in other] == [row["id"] for row in third]
    return [one[3], other[3], third[3]]


class TestColumns:
    def test_of_a_transfer_set(self, flat: FlatRows, tmp_path: Path) -> None:
        one, other, third = in_every_form(flat, tmp_path)
        plain = {
            "id": "b000-i001:1",
            "key": f"{22:016x}",
            "text": "[MASK] watch",
            "iteration": 1,
            "label": None,
            "original": f"{12:016x}",
            "rule": "mask+ngram",
            "changes": "masked 1 · n-gram: words 3–4 of the source",
            "teacher": "positive",
            "student": "negative",
        }
        for found in (one, other):
            assert {name: found[name] for name in plain} == plain
            assert found["probabilities"] == pytest.approx([0.4, 0.6], abs=1e-6)
            assert found["student_confidence"] == pytest.approx(0.6, abs=1e-6)
            assert found["divergence"] == pytest.approx(0.02905, abs=1e-5)
        assert third["label"] == "" and third["changes"] == plain["changes"]
        assert float(third["probabilities.positive"]) == pytest.approx(0.6)
        assert float(third["student_logits.positive"]) == pytest.approx(-np.log(0.6 / 0.4))

    def test_of_pairs_with_scores(self, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "data")
        pair = {**sentence("one"), **{f"{k}_2": v for k, v in sentence("two three").items()}}
        rows = [{"key": 1, "label": 0.25, **pair}, {"key": 2, "label": None, **pair}]
        table = transfer_table(rows, regression=True)
        for side in ("", "_2"):
            table = table.append_column(f"vector{side}", list_column(np.array([[4.5, 2.25], [1.0, 2.0]], np.float16)))
        folder = layout.transfer(TASK, "full")
        write_set(folder, {"b000-i000": table}, layout.outputs(TASK, TEACHER, "full"), [[1.5], [np.nan]])
        flat = FlatRows(JoinedRows.open(folder), None, Filter())
        write_tables(tmp_path / "flat.jsonl", flat.tables(), None)
        one, other = map(json.loads, (tmp_path / "flat.jsonl").read_text().splitlines())
        assert one["text_pair"] == "two three" and one["vector_pair"] == one["vector"] == [4.5, 2.25]
        assert (one["label"], one["teacher"]) == (0.25, 1.5) and "logits" not in one
        assert (other["label"], other["teacher"]) == (None, None)
        assert one["rule"] == "original" and one["changes"] == "unchanged | unchanged"

    def test_rows_without_an_answer_are_null(self, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "data")
        tables = {"b000-i000": transfer_table([{"key": n, **sentence("a")} for n in range(2)])}
        folder = layout.transfer(TASK, "full")
        answers = [[np.nan, np.nan], [0.0, 0.0]]
        write_set(folder, tables, layout.outputs(TASK, TEACHER, "full"), answers)
        flat = FlatRows(JoinedRows.open(folder), NAMES, Filter())
        names = ("teacher", "confidence", "entropy", "probabilities", "logits")
        write_tables(tmp_path / "flat.jsonl", flat.tables(), NAMES)
        lines = (tmp_path / "flat.jsonl").read_text().splitlines()
        one, other = ([json.loads(line)[name] for name in names] for line in lines)
        assert one == [None] * 5
        assert other == ["negative", 0.5, 1.0, [0.5, 0.5], [0.0, 0.0]]

    def test_an_indexs_own_ids_and_missing_vectors(self, tmp_path: Path) -> None:
        texts, ids = (pa.array(own, pa.large_string()) for own in (["a", "so dull"], ["A-1", "7"]))
        vectors = list_column(np.array([[np.nan, np.nan], [0.5, -1.0]], np.float32))
        write_set(tmp_path / "shop", {"one": pa.table({"text": texts, "id": ids, "vector": vectors})})
        flat = FlatRows(JoinedRows.open(tmp_path / "shop"), None, Filter())
        for ending in ("parquet", "jsonl", "csv"):
            write_tables(tmp_path / f"flat.{ending}", flat.tables(), None)
        wanted = [{"id": "A-1", "text": "a", "vector": None}, {"id": "7", "text": "so dull", "vector": [0.5, -1.0]}]
        assert pq.read_table(tmp_path / "flat.parquet").to_pylist() == wanted
        lines = (tmp_path / "flat.jsonl").read_text().splitlines()
        assert [json.loads(line) for line in lines] == wanted
        # What is missing is empty, as in all columns.
        assert (tmp_path / "flat.csv").read_text().splitlines() == [
            '"id","text","vector"',
            '"A-1","a",',
            '"7","so dull","[0.5, -1.0]"',
        ]

    def test_metadata_are_those_of_a_teachers_file(self, parquet: str) -> None:
        metadata = pq.read_schema(parquet).metadata
        assert json.loads(metadata[b"classes"]) == NAMES
        assert len(json.loads(metadata[b"provenance"])["digests"]) == 2


class TestFiles:
    def test_row_groups_are_filled_and_bounded(
        self, flat: FlatRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writer, "GROUP_ROWS", 4)
        write_tables(tmp_path / "flat.parquet", flat.tables(), NAMES)
        file = pq.ParquetFile(tmp_path / "flat.parquet").metadata
        # Shards have 2, 3, 2 and 2 rows.
        assert [file.row_group(n).num_rows for n in range(file.num_row_groups)] == [5, 4]

    def test_a_killed_export_leaves_nothing(self, flat: FlatRows, tmp_path: Path) -> None:
        def truncated(batch: RowBatch) -> np.ndarray:
            if batch.shard:
                raise KeyboardInterrupt
            return batch.logits

        folder = tmp_path / "out"
        for ending in ("parquet", "jsonl", "csv"):
            own = FlatRows(flat.rows, NAMES, Filter(), truncated)
            with pytest.raises(KeyboardInterrupt):
                write_tables(folder / f"flat.{ending}", own.tables(), NAMES)
        assert not list(folder.iterdir())

    def test_an_unknown_form_and_no_rows_are_refused(self, flat: FlatRows, tmp_path: Path) -> None:
        with pytest.raises(PotstillError, match=r"ends in \.parquet, \.arrow, \.jsonl, \.csv"):
            write_tables(tmp_path / "flat.xlsx", flat.tables(), NAMES)
        with pytest.raises(PotstillError, match="no row was selected"):
            write_tables(tmp_path / "flat.csv", iter([]), NAMES)
        assert not (tmp_path / "flat.csv").exists()
