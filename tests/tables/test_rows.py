"""Rows of every format: their quirks, and the message for each way in which a file can be wrong."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.tables.rows import FIRST_ROW, read_rows

WANTED = ["sentence", "label"]


def rows(path: Path, content: bytes | str, format: str = "tsv", **options: object) -> list[tuple]:
    """Write ``content``, read it back, and return the rows as tuples."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    options = {"columns": None, "wanted": WANTED} | options
    table = read_rows(path, format, **options)
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


@pytest.mark.parametrize("text", ["\\ud800", "a \\udc00 b", "\\ude00\\ud83d"])
def test_half_a_surrogate_pair_names_row_and_column(tmp_path: Path, text: str) -> None:
    path = tmp_path / "f.jsonl"
    content = '{"sentence": "a", "label": 1}\n{"sentence": "%s", "label": 0}\n'
    with pytest.raises(DistilleryError, match=r"f\.jsonl: row 2, column 'sentence' holds half a"):
        rows(path, content % text, "jsonl")
    # Both halves are a character.
    assert rows(path, content % "\\ud83d\\ude00", "jsonl")[1] == ("😀", "0")


@pytest.mark.parametrize("line", ["9" * 5000, "[" * 100_000])
def test_json_beyond_the_parsers_limits_names_the_row(tmp_path: Path, line: str) -> None:
    with pytest.raises(DistilleryError, match=r"f\.jsonl: row 1 cannot be read as JSON"):
        rows(tmp_path / "f.jsonl", line, "jsonl")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([["a"]]), "row 1, column 'sentence' holds a list"),
        (pa.array([{"a": 1}]), "row 1, column 'sentence' holds a dict"),
        (pa.array([2**62], pa.timestamp("us")), "not a readable Parquet file"),
    ],
    ids=["list", "struct", "far_date"],
)
def test_parquet_values_that_are_no_texts(tmp_path: Path, column: pa.Array, message: str) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"sentence": column, "label": ["1"]}), path)
    with pytest.raises(DistilleryError, match=rf"f\.parquet: .*({message})"):
        read_rows(path, "parquet", None, WANTED)


@pytest.mark.parametrize(
    "content",
    [
        "sentence\tlabel\na b\t1\nc\t0\n",
        "sentence\tlabel\na b\t1\nc\t0",  # no line end at the end
        "sentence\tlabel\na b\t1\nc\t0\n\n\n",  # blank lines at the end
        "sentence\tlabel\r\na b\t1\r\nc\t0\r\n",  # Windows line ends
        b"\xef\xbb\xbfsentence\tlabel\na b\t1\nc\t0\n",  # byte order mark, as in MRPC
        "label\tid\tsentence\n1\t7\ta b\n0\t8\tc\n",  # other order, more columns
    ],
)
def test_tsv(tmp_path: Path, content: bytes | str) -> None:
    assert rows(tmp_path / "a.tsv", content) == [("a b", "1"), ("c", "0")]


def test_tsv_has_no_quoting(tmp_path: Path) -> None:
    content = 'sentence\tlabel\n"open quote\t1\n""twice""\t0\nline\u2028separator\x85\t1\n'
    expected = [('"open quote', "1"), ('""twice""', "0"), ("line\u2028separator\x85", "1")]
    assert rows(tmp_path / "a.tsv", content) == expected


def test_headerless_and_header_in_one_source(tmp_path: Path) -> None:
    # CoLA: train and dev have no header line, test has one and no labels.
    columns = ["source", "label", "mark", "sentence"]
    train = rows(tmp_path / "train.tsv", "gj04\t1\t\tHi.\ngj04\t0\t*\tHo.\n", columns=columns)
    assert train == [("Hi.", "1"), ("Ho.", "0")]
    options = {"columns": columns, "optional": ["label"]}
    test = rows(tmp_path / "test.tsv", "index\tsentence\n0\tBill.\n", **options)
    assert test == [("Bill.",)]
    table = read_rows(tmp_path / "test.tsv", "tsv", columns, WANTED, ["label"])
    assert table.schema.metadata[FIRST_ROW] == b"2"


def test_csv(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbflabel,sentence\r\n1,"a, ""b""\nc"\r\n0,d\r\n'
    assert rows(tmp_path / "a.csv", content, "csv") == [('a, "b"\nc', "1"), ("d", "0")]
    content = b'1,"a, b"\n'
    columns = ["label", "sentence"]
    assert rows(tmp_path / "a.csv", content, "csv", columns=columns) == [("a, b", "1")]


def test_jsonl(tmp_path: Path) -> None:
    content = (
        '{"sentence": "a", "label": 1}\n{"sentence": "b", "label": 1.0, "x": []}\n'
        '{"sentence": "c", "label": 2.5}\r\n{"sentence": null, "label": "1"}\n'
        '{"sentence": "d", "label": true}\n\n'
    )
    expected = [("a", "1"), ("b", "1"), ("c", "2.5"), ("", "1"), ("d", "true")]
    assert rows(tmp_path / "a.jsonl", content, "jsonl") == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1, 0]), ["1", "0"]),
        (pa.array([1.0, None]), ["1", ""]),
        (pa.array([2.5, float("nan")]), ["2.5", ""]),
        (pa.array(["x", "1.0"]), ["x", "1.0"]),
        (pa.array(["x", "y"]).dictionary_encode(), ["x", "y"]),
    ],
)
def test_parquet(tmp_path: Path, values: pa.Array, expected: list[str]) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"label": values, "sentence": ["a", "b"]}), path)
    table = read_rows(path, "parquet", None, WANTED)
    assert table["label"].to_pylist() == expected
    assert table["sentence"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        ("tsv", b"", "a: no rows"),
        ("tsv", b"sentence\tlabel\n", "a: no rows"),
        ("tsv", b"text\tlabel\nx\t1\n", "no column 'sentence'; there are 'text', 'label'"),
        ("tsv", b"sentence\tlabel\tlabel\nx\t1\t1\n", "column 'label' appears 2 times"),
        ("tsv", b"sentence\tlabel\nx\t1\ny\n", "row 3 has 1 columns, not 2"),
        ("tsv", b"sentence\tlabel\nx\t1\n\ny\t0\n", "row 3 has 1 columns, not 2"),
        ("tsv", b"sentence\tlabel\nx\ty\t1\n", "row 2 has 3 columns, not 2"),
        ("tsv", b"sentence\tlabel\nx\t1\n\xe9t\xe9\t1\n", "row 3 is not UTF-8 .byte 0xe9"),
        ("csv", b'sentence,label\n"x"y,1\n', "row 2 is not valid CSV"),
        ("csv", b'sentence,label\nx,1\n"y' + b"y" * 140_000, "row 3 is not valid CSV"),
        ("csv", b"sentence,label\nx,y,1\n", "row 2 has 3 columns, not 2.*comma"),
        ("jsonl", b"\n", "no rows"),
        ("jsonl", b'{"sentence": "x", "label": 1}\n{"sent', "row 2 is not valid JSON"),
        ("jsonl", b"[1]\n", "row 1 is not a JSON object"),
        ("jsonl", b'{"text": "x", "label": 1}\n', "row 1 has no key 'sentence', only text, label"),
        ("jsonl", b'{"sentence": [], "label": 1}\n', "row 1, column 'sentence' holds a list"),
        ("parquet", b"PAR1", "not a readable Parquet file"),
    ],
)
def test_errors(tmp_path: Path, format: str, content: bytes, message: str) -> None:
    with pytest.raises(DistilleryError, match=message):
        rows(tmp_path / "a", content, format)


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_long_texts(tmp_path: Path, format: str) -> None:
    # Python's CSV reader refuses fields of more than 131,072 characters by itself.
    text = "word " * 60_000
    content = {
        "csv": f'sentence,label\n"{text}",1\n',
        "tsv": f"sentence\tlabel\n{text}\t1\n",
        "jsonl": json.dumps({"sentence": text, "label": 1}) + "\n",
    }
    assert rows(tmp_path / "a", content[format], format) == [(text, "1")]


def test_missing_file_and_column(tmp_path: Path) -> None:
    with pytest.raises(DistilleryError, match=r"absent.tsv: not found"):
        read_rows(tmp_path / "absent.tsv", "tsv", None, WANTED)
    pq.write_table(pa.table({"sentence": ["a"]}), tmp_path / "a.parquet")
    with pytest.raises(DistilleryError, match="no column 'label'"):
        read_rows(tmp_path / "a.parquet", "parquet", None, WANTED)
    table = read_rows(tmp_path / "a.parquet", "parquet", None, WANTED, ["label"])
    assert table.column_names == ["sentence"]
