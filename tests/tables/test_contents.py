"""What stands in files: columns as text, header lines, separators, class names, row numbers."""

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.tables.contents import read_content
from pipeline_lib.tables.reader import ReadOptions


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text", "names", "format", "first"),
    [
        ("a.csv", 'text,label\n"so, so",1\n', ["text", "label"], "csv", 2),
        # Another separator, and an index without a name.
        ("a.csv", "text;label\nso, so;1\n", ["text", "label"], "csv", 2),
        ("a.csv", ",text,label\n0,so so,1\n", ["text", "label"], "csv", 2),
        ("a.tsv", 'text\tlabel\n"so\t1\n', ["text", "label"], "tsv", 2),
        # A number, or a value of its column, is no name.
        ("a.tsv", "so so\t1\nwell\t0\n", ["column_1", "column_2"], "tsv", 1),
        ("a.csv", "fine,good\nso so,bad\nwell,good\n", ["column_1", "column_2"], "csv", 1),
        # Counted columns, as pandas writes a table without names, with its index or without.
        ("a.csv", "0,1\nso so,1\nwell,0\n", ["0", "1"], "csv", 2),
        ("a.csv", ",0,1\n0,so so,1\n1,well,0\n", ["0", "1"], "csv", 2),
        ("a.tsv", "1\t2\t3\n7\tso so\tx\n8\twell\ty\n", ["1", "2", "3"], "tsv", 2),
        ("a.jsonl", '{"text": "so", "label": 1, "more": [1]}\n', ["text", "label"], "jsonl", 1),
        ("a.txt", "so so\n\nwell\n", ["text"], "lines", 1),
        # The first line has more commas, and the others have not; or is a text itself.
        ("a.csv", "text, all;label\nso;1\nwell;0\n", ["text, all", "label"], "csv", 2),
        ("a.csv", "text,label\rso,1\rwell,0\r", ["text", "label"], "csv", 2),
        # A first line that comes again, as do its values.
        ("a.csv", "fine,good\nso so,bad\nfine,good\nwell,good\n", ["column_1", "column_2"], "csv", 1),
        ("a.tsv", "So it was well.\nAnd so was that.\n", ["column_1"], "tsv", 1),
        # What stands deeper; several values in a list are none.
        (
            "a.jsonl",
            '{"data": {"text": "so"}, "label": ["x"], "more": ["a", "b"]}\n',
            ["data.text", "label"],
            "jsonl",
            1,
        ),
    ],
)
def test_columns(tmp_path: Path, name: str, text: str, names: list[str], format: str | None, first: int) -> None:
    found = read_content([write(tmp_path / name, text)])
    assert [name for name in found.names if name not in found.lists] == names
    assert found.format == format
    assert found.place(0) == (tmp_path / name, first)
    assert found.columns == (names if first == 1 and name[-3:] in ("csv", "tsv") else None)


def test_what_stands_deeper_is_no_column_of_the_file(tmp_path: Path) -> None:
    row = {"text": "so", "meta": {"by": None, "label": 1.0}, "tokens": ["so"] * 2}
    rows = [row, row | {"meta": None}]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(own) + "\n" for own in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for found in (read_content([path]), read_content([tmp_path / "a.parquet"])):
        assert found.names == ["text", "meta.by", "meta.label", "tokens"] and not found.others
        assert found.lists == {"tokens"}
        assert found.values("meta.label") == ["1", ""]


def test_decimals_are_numbers_and_nan_is_missing(tmp_path: Path) -> None:
    score = pa.array([Decimal("4.5"), Decimal("2.0"), None], pa.decimal128(4, 1))
    label = pa.array([1.0, float("nan"), None])
    table = pa.table({"score": score, "label": label, "raw": [b"so", b"\xff", None]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    for name in ("a.parquet", "a.arrow"):
        found = read_content([tmp_path / name])
        assert found.values("score") == ["4.5", "2", ""] and found.values("label") == ["1", "", ""]
        assert found.others == {"raw": "binary"}


def test_names_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "gj04\t1\t\tWell so.\n")
    columns = ["source", "label", "mark", "sentence"]
    assert read_content([path], ReadOptions(columns=columns)).values("sentence") == ["Well so."]
    with pytest.raises(PotstillError, match=r"4 columns, and --columns names 2"):
        read_content([path], ReadOptions(columns=["a", "b"]))


def test_parts_stand_one_behind_the_other(tmp_path: Path) -> None:
    said = {"info": {"features": {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}}}
    for number, texts in enumerate((["a", "b"], ["c"])):
        table = pa.table({"text": texts, "label": [0] * len(texts), "vector": [[1.0]] * len(texts)})
        table = table.replace_schema_metadata({"huggingface": json.dumps(said)})
        pq.write_table(table, tmp_path / f"train-{number}.parquet")
    with pa.OSFile(str(tmp_path / "c.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found = read_content([tmp_path / f"train-{number}.parquet" for number in range(2)])
    assert found.names == ["text", "label"] and found.class_names == {"label": ["neg", "pos"]}
    assert found.place(2) == (tmp_path / "train-1.parquet", 1) and found.format is None
    saved = read_content([tmp_path / "c.arrow"])
    assert saved.values("label") == ["0"] and saved.class_names == found.class_names


def test_faults_name_the_row(tmp_path: Path) -> None:
    assert read_content([write(tmp_path / "a.csv", "a,b\nx,1\n\ny,2\n")]).place(1)[1] == 4
    for name, text, message in (
        ("a.csv", "a,a\nx,y\n", r"column 'a' occurs 2 times"),
        ("a.csv", "a,b\nx,1\na,b\ny,0\na,b\n", r"a\.csv: row 3, 5 repeats the header line"),
        ("a.jsonl", '{"a": [1, 2]}\n{"a": [3]}\n', r"plain values, only a \(lists of names\)"),
        ("a.jsonl", '{"a": {"b": "\\ud800"}}\n', r"row 1, column 'a\.b' holds half a surrogate"),
    ):
        with pytest.raises(PotstillError, match=message):
            read_content([write(tmp_path / name, text)])


@pytest.mark.parametrize(
    ("header", "is_header"),
    [
        # A column called after its positive class is what users of pandas write.
        ("message,spam", True),
        ("text,spam", True),
        (" Text , spam", True),
        ("a text that is long enough,spam", False),
        ("note,spam", False),
    ],
)
def test_a_header_is_believed_where_a_name_is_usual(tmp_path: Path, header: str, is_header: bool) -> None:
    rows = "".join(f"words of number {n},{('spam', 'ham')[n % 2]}\n" for n in range(20))
    (tmp_path / "a.csv").write_text(f"{header}\n{rows}")
    content = read_content([tmp_path / "a.csv"])
    assert content.is_nameless != is_header and content.table.num_rows == 20 + (not is_header)
    assert not is_header or content.names == [name.strip() for name in header.split(",")]
