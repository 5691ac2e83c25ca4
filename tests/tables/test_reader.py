"""Rows of every format: their quirks, and the message for each way in which a file can be wrong."""

import bz2
import csv
import gzip
import io
import json
import os
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import printable
from pipeline_lib.tables import reader
from pipeline_lib.tables.answer_writer import AnsweredBatch, json_lines, text_lines
from pipeline_lib.tables.reader import ReadOptions, open_input, read_batches
from pipeline_lib.tables.writer import open_writer, require_other

WANTED = ["sentence", "label"]
ROWS = [("a b", "1"), ("c", "0")]
Rows = list[tuple[str, ...]]


def rows_of(path: Path | None, optional: tuple[str, ...] = (), names: list[str] = WANTED, **options: Any) -> Rows:
    batches = read_batches(path, names, optional, ReadOptions(**options))
    return [row for batch in batches for row in zip(*map(batch.texts, names), strict=True)]


def numbers_of(path: Path, **options: Any) -> list[int]:
    batches = read_batches(path, WANTED, options=ReadOptions(**options))
    return [number for batch in batches for number in batch.numbers]


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def compressed(content: bytes, suffix: str) -> bytes:
    if suffix == ".zst":
        return pa.Codec("zstd").compress(content, asbytes=True)
    return {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[suffix](content)


class TestDialects:
    @pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
    def test_tables_of_any_dialect(self, tmp_path: Path, separator: str, quoting: Any, end: str, encoding: str) -> None:
        seed = f"{separator}{quoting}{end}{encoding}"
        cells = random.Random(seed)
        signs = ["word", "ü", "🎉", '"', "'", " ", "\u2028", "\x85", *",;|"]
        # Quoting is in use: otherwise no mark at all would be written as it is meant.
        rows = [('say "so"', "1"), (f"a{separator}b", "0")]
        rows += [("x" + "".join(cells.choices(signs, k=12)), str(cells.randrange(2))) for _ in range(80)]
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=end)
        writer.writerows([WANTED, *rows])
        path = tmp_path / ("a.tsv" if separator == "\t" else "a.csv")
        path.write_bytes(text.getvalue().encode(encoding))
        assert rows_of(path) == rows

    @pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".zst"])
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.csv", "sentence,label\na b,1\nc,0\n"),
            ("a.tsv", "sentence\tlabel\na b\t1\nc\t0\n"),
            ("a.jsonl", '{"sentence": "a b", "label": 1}\n{"sentence": "c", "label": 0}\n'),
            ("a.json", '[{"sentence": "a b", "label": 1},\n {"sentence": "c", "label": 0}]'),
        ],
    )
    def test_compressed_whatever_the_name(self, tmp_path: Path, name: str, content: str, suffix: str) -> None:
        packed = compressed(content.encode(), suffix)
        assert rows_of(write(tmp_path / f"{name}{suffix}", packed)) == ROWS
        assert rows_of(write(tmp_path / name, packed)) == ROWS

    @pytest.mark.parametrize(
        "content",
        [
            "sentence\tlabel\na b\t1\nc\t0",  # no line end at the end
            "sentence\tlabel\na b\t1\nc\t0\n\n\n",  # blank lines at the end
            "sentence\tlabel\na b\t1\n\nc\t0\n\t\n",  # and between; a spreadsheet's empty row
            b"\xef\xbb\xbfsentence\tlabel\na b\t1\nc\t0\n",  # byte order mark, as in MRPC
            "label\tid\tsentence\n1\t7\ta b\n0\t8\tc\n",  # other order, more columns
            "\n\nsentence\tlabel\na b\t1\nc\t0\n",
        ],
    )
    def test_blank_lines_and_order(self, tmp_path: Path, content: bytes | str) -> None:
        assert rows_of(write(tmp_path / "a.tsv", content)) == ROWS

    def test_marks_of_quotation_stay_in_official_tsv(self, tmp_path: Path) -> None:
        text = 'sentence\tlabel\n"open quote\t1\n""twice""\t0\nline\u2028separator\x85\t1\n'
        expected = [('"open quote', "1"), ('""twice""', "0"), ("line\u2028separator\x85", "1")]
        assert rows_of(write(tmp_path / "a.tsv", text)) == expected
        # All of one column, but not its name, are quotations.
        text = 'sentence\tlabel\n"So it goes."\t1\n"It goes so."\t0\n'
        assert rows_of(write(tmp_path / "a.tsv", text))[0] == ('"So it goes."', "1")

    def test_quoted_tsv_is_read_so_and_said(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        text = 'sentence\tlabel\nso so\t1\n"She said ""so"" twice"\t0\n'
        path = write(tmp_path / "a.tsv", text)
        assert rows_of(path)[1] == ('She said "so" twice', "0")
        assert caplog.messages == [f"{path}: its cells are quoted, as in CSV."]
        assert rows_of(path, quoted=False)[1] == ('"She said ""so"" twice"', "0")
        text = 'sentence\tlabel\nso so\t1\n"one\ttwo\tthree"\t0\n'
        assert rows_of(write(tmp_path / "b.tsv", text))[1] == ("one\ttwo\tthree", "0")

    def test_a_line_for_excel_is_skipped(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", "sep=;\nsentence;label\na b;1\nc;0\n")
        assert rows_of(path) == ROWS and numbers_of(path) == [3, 4]

    @pytest.mark.parametrize("encoding", ["cp1252", "cp1251", "shift_jis"])
    def test_other_encodings_are_guessed(self, tmp_path: Path, caplog: pytest.LogCaptureFixture, encoding: str) -> None:
        texts = {
            "cp1252": "Der Kaffee für die Gäste war köstlich, und die Gebühr fällig.",
            "cp1251": "Этот фильм очень хороший, и мы хотим посмотреть его снова.",
            "shift_jis": "この映画はとても面白かったので、もう一度見たいです。",
        }
        rows = [(texts[encoding], "1")] * 20
        content = "\n".join(["sentence\tlabel", *("\t".join(row) for row in rows)])
        path = write(tmp_path / "a.tsv", content.encode(encoding))
        assert rows_of(path, encoding=encoding) == rows and not caplog.messages
        assert rows_of(path) == rows
        assert len(caplog.messages) == 1 and "which was guessed" in caplog.messages[0]

    def test_an_encoding_that_shows_late(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pipeline_lib.tables.lines.SAMPLE", 1 << 14)
        row, count = "plain words of a long file\t1\n", 2000
        late = "Gebühr und Gäste für später\t0\n".encode("cp1252")
        content = b"sentence\tlabel\n" + row.encode() * count + late * 20
        path = write(tmp_path / "a.tsv", content)
        assert rows_of(path)[-1] == ("Gebühr und Gäste für später", "0")
        with pytest.raises(PotstillError, match=rf"row {count + 2} is not UTF-8"):
            rows_of(path, encoding="utf-8")


class TestFormats:
    def test_headerless_and_header_in_one_source(self, tmp_path: Path) -> None:
        # CoLA: train and dev have no header line, test has one and no labels.
        columns = ["source", "label", "mark", "sentence"]
        train = write(tmp_path / "train.tsv", "gj04\t1\t\tHi.\ngj04\t0\t*\tHo.\n")
        assert rows_of(train, columns=columns) == [("Hi.", "1"), ("Ho.", "0")]
        assert numbers_of(train, columns=columns) == [1, 2]
        test = write(tmp_path / "test.tsv", "index\tsentence\n0\tBill.\n")
        assert rows_of(test, ("label",), columns=columns) == [("Bill.", "")]

    def test_short_and_long_rows(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.tsv", "label\tsentence\n1\ta b\n0\n")
        assert rows_of(path, short_rows=True) == [("a b", "1"), ("", "0")]
        path = write(tmp_path / "a.csv", 'sentence,label\n"a\nb",1\n\nc,0\n')
        assert numbers_of(path) == [2, 5]
        with open_input(path) as source:
            assert (source.format, source.columns) == ("csv", WANTED)

    def test_json(self, tmp_path: Path) -> None:
        content = (
            '{"sentence": "a", "label": 1}\n{"sentence": "b", "label": 1.0, "x": []}\n\n'
            '{"sentence": "c", "label": 2.5}\r\n{"sentence": null, "label": "1"}\n'
            '{"sentence": "\\ud83d\\ude00", "label": true}\n{"label": ["x"]}\n{"sentence": NaN}\n\n'
        )
        expected = [("a", "1"), ("b", "1"), ("c", "2.5"), ("", "1"), ("😀", "true"), ("", "x")]
        path = write(tmp_path / "a.jsonl", content)
        assert rows_of(path) == [*expected, ("", "")]
        assert numbers_of(path) == [1, 2, 4, 5, 6, 7, 8]
        objects = [json.loads(line) for line in content.splitlines() if line]
        path = write(tmp_path / "b.json", json.dumps(objects, indent=2))
        assert rows_of(path) == [*expected, ("", "")] and numbers_of(path) == [*range(1, 8)]

    def test_an_array_longer_than_what_is_read_at_a_time(self, tmp_path: Path) -> None:
        objects = [{"sentence": "ü" * (n * 37 % 9000), "label": n} for n in range(200)]
        path = write(tmp_path / "a.json", json.dumps(objects, ensure_ascii=False))
        assert rows_of(path) == [(row["sentence"], str(row["label"])) for row in objects]
        write(path, path.read_text("utf-8")[:-20])
        with pytest.raises(PotstillError, match=r"a\.json: row 200 is not valid JSON"):
            rows_of(path)

    def test_nested_values(self, tmp_path: Path) -> None:
        rows = [{"data": {"text": "a"}, "meta": [{"label": 1}]}, {"data": None, "meta": []}]
        write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
        for path in tmp_path.iterdir():
            assert rows_of(path, names=["data.text", "meta.label"]) == [("a", "1"), ("", "")]

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            (pa.array([1, 0]), ["1", "0"]),
            (pa.array([1.0, None]), ["1", ""]),
            (pa.array([2.5, float("nan")]), ["2.5", ""]),
            (pa.array(["x", "1.0"]), ["x", "1.0"]),
            (pa.array(["x", "y"]).dictionary_encode(), ["x", "y"]),
            (pa.array(["x", "ü"], pa.large_string()), ["x", "ü"]),
            (pa.array(["x", "ü"], pa.string_view()), ["x", "ü"]),
            (pa.array(["x", "ü".encode()], pa.binary()), ["x", "ü"]),
            (pa.array(["x", None], pa.large_binary()), ["x", ""]),
            (pa.array([True, False]), ["true", "false"]),
            (pa.array([None, None]), ["", ""]),
            (pa.array([["x"], []]), ["x", ""]),
        ],
        ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
    )
    def test_types_of_parquet_and_arrow(self, tmp_path: Path, values: pa.Array, expected: list[str]) -> None:
        table = pa.table({"label": values, "sentence": ["a", "b"]})
        pq.write_table(table, tmp_path / "a.parquet")
        for name, new in (("a.arrow", pa.ipc.new_stream), ("b.arrow", pa.ipc.new_file)):
            with pa.OSFile(str(tmp_path / name), "wb") as sink, new(sink, table.schema) as writer:
                writer.write_table(table)
        for path in tmp_path.iterdir():
            assert rows_of(path) == [("a", expected[0]), ("b", expected[1])]

    def test_lines(self, tmp_path: Path) -> None:
        odd = "na\u2028ïve\x0b\x0c\x1c\x85\rend"
        path = write(tmp_path / "a.txt", f"\ufeffone\r\n\r\n{odd}\n\n")
        expected = [("one",), ("",), (odd,), ("",)]
        assert rows_of(path, names=["text"]) == expected
        with pytest.raises(PotstillError, match="no column 'label'; there are 'text'"):
            rows_of(path, names=["label"])

    def test_folders_are_read_file_by_file(self, tmp_path: Path) -> None:
        write(tmp_path / "part-1.csv", "sentence,label\nc,0\n")
        write(tmp_path / "part-0.jsonl", '{"sentence": "a b", "label": 1}')
        write(tmp_path / "README.md", "no data")
        (tmp_path / ".cache").mkdir()
        write(tmp_path / ".cache" / "a.csv", "sentence,label\nnone,0\n")
        assert rows_of(tmp_path) == ROWS

    def test_batches_have_a_limit(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        row = "word " * 20_000
        path = write(tmp_path / "a.csv", "sentence,label\n" + f"{row},1\n" * 40)
        for name, value, most in (("BATCH_ROWS", 3, 3), ("BATCH_CHARACTERS", 300_000, 14)):
            with monkeypatch.context() as patch:
                patch.setattr(reader, name, value)
                sizes = [len(batch) for batch in read_batches(path, WANTED)]
                assert sum(sizes) == 40 and max(sizes) <= most


class TestStandardInput:
    @pytest.fixture
    def pipe(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        def fill(content: bytes) -> None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

        return fill

    @pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_tables(self, pipe: Any, suffix: str, encoding: str) -> None:
        text = "sentence;label\na b;1\nc;0\n"
        pipe(compressed(text.encode(encoding), suffix))
        assert rows_of(None, format="csv") == ROWS
        pipe(b"one\n\ntwo")
        assert rows_of(None, names=["text"]) == [("one",), ("",), ("two",)]
        with pytest.raises(PotstillError, match="standard input: Parquet is read from its end"):
            rows_of(None, format="parquet")

    @pytest.mark.parametrize("format", ["lines", "csv", "tsv", "jsonl"])
    def test_a_row_is_read_as_soon_as_it_is_written(self, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
        receiver, sender = os.pipe()
        with os.fdopen(receiver, "rb") as stdin, os.fdopen(sender, "wb", 0) as pipe:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stdin))
            header = "" if format in ("lines", "jsonl") else "text\n"
            row = '{"text": "%s"}\n' if format == "jsonl" else "%s\n"
            pipe.write((header + row % "one").encode())
            batches = read_batches(None, ["text"], options=ReadOptions(format))
            assert next(batches).texts("text") == ["one"]
            pipe.write((row % "two" + row % "three" + (row % "four")[:4]).encode())
            assert next(batches).texts("text") == ["two", "three"]
            pipe.write((row % "four")[4:].encode())
            pipe.close()
            assert [batch.texts("text") for batch in batches] == [["four"]]


class TestFaults:
    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.tsv", "text\tlabel\nx\t1\n", "no column 'sentence'; there are 'text', 'label'"),
            ("a.tsv", b"", "no rows. Put texts into it"),
            ("a.tsv", "sentence\tlabel\nx\t1\ny\n", "row 3 has 1 columns, not 2.*one tab"),
            ("a.tsv", "sentence\tlabel\nx\ty\t1\n", "row 2 has 3 columns, not 2"),
            ("a.csv", "sentence;label\n1;2\n3\n", "row 3 has 1 columns, not 2.*one semicolon"),
            ("a.csv", 'sentence,label\nx,1\n"y' + "y" * 140_000, "row 3 is not valid CSV"),
            ("a.jsonl", "{}\n" + "9" * 5000, "row 2 is not valid JSON"),
            ("a.jsonl", '{"a":' * 100_000, "row 1 is not valid JSON"),
            ("a.json", "[1]\n", "row 1 is not a JSON object"),
            ("a.jsonl", '{"a": 1}\n3\n', "row 2 is not a JSON object"),
            ("a.jsonl", '{"text": "x", "label": 1}\n', "no column 'sentence'; there are 'text', "),
            ("a.jsonl", '{"sentence": [1], "label": 1}\n', "row 1, column 'sentence' holds a list"),
            ("a.jsonl", '{"sentence": "\\ud800", "label": 1}\n', "'sentence' holds half a surr"),
            ("a.arrow", b"ARROW1", "not a readable Arrow file"),
            ("a.csv", compressed(b"sentence,label\nx,1\n" * 9999, ".zst")[:-9], "truncated"),
        ],
    )
    def test_row_and_remedy_are_named(self, tmp_path: Path, name: str, content: bytes | str, message: str) -> None:
        path = write(tmp_path / name, content)
        with pytest.raises(PotstillError, match=rf"{path.name}: .*{message}"):
            rows_of(path)

    @pytest.mark.parametrize(
        ("column", "message"),
        [
            (pa.array([["a", "b"]]), "row 1, column 'sentence' holds a list"),
            (pa.array([{"a": 1}]), "row 1, column 'sentence' holds a dict"),
            (pa.array([b"\xff"]), "row 1, column 'sentence' holds bytes that are not UTF-8"),
            (pa.array([2**62], pa.timestamp("us")), "not a readable Parquet file"),
        ],
        ids=["list", "struct", "bytes", "far_date"],
    )
    def test_parquet_values_that_are_no_texts(self, tmp_path: Path, column: pa.Array, message: str) -> None:
        path = tmp_path / "f.parquet"
        pq.write_table(pa.table({"sentence": column, "label": ["1"]}), path)
        with pytest.raises(PotstillError, match=rf"f\.parquet: .*({message})"):
            rows_of(path)

    def test_files_that_are_not_there(self, tmp_path: Path) -> None:
        for name in ("absent.tsv", "absent.parquet"):
            with pytest.raises(PotstillError, match=f"{name}: not found"):
                rows_of(tmp_path / name)
        with pytest.raises(PotstillError, match="no data files in this folder"):
            rows_of(tmp_path)
        with pytest.raises(PotstillError, match="encoding 'utf-9': unknown"):
            rows_of(write(tmp_path / "a.csv", "sentence,label\n"), encoding="utf-9")
        with pytest.raises(PotstillError, match=r"there are 'a', 'b'. Use --text\.$"):
            rows_of(write(tmp_path / "a.csv", "a,b\n1,2\n"), remedy="Use --text.")


FORMULAS = ['=HYPERLINK("http://x")', "@SUM(A1)", "+cmd|' /C calc'!A0", "-so it was", "\tx", "-"]
TEXTS = ["so = so", "-5 degrees", "+1", "", "a@b"]


@pytest.mark.parametrize("raw", [False, True])
def test_cells_that_a_spreadsheet_would_compute(tmp_path: Path, raw: bool) -> None:
    path, texts = tmp_path / "a.csv", FORMULAS + TEXTS
    with open_writer(path, raw_cells=raw) as write:
        write(pa.table({"text": texts, "n": pa.array(range(-5, 6))}), None)
        write(
            pa.table({"text": [None] * 3, "n": [1] * 3}).cast(pa.schema([("text", pa.string()), ("n", pa.int64())])),
            None,
        )
    with path.open(newline="") as file:
        rows = [*csv.reader(file)][1:]
    marked = FORMULAS if raw else [f"'{text}" for text in FORMULAS]
    assert [row[0] for row in rows] == [*marked, *TEXTS, "", "", ""]
    assert [int(row[1]) for row in rows[:11]] == [*range(-5, 6)]


def test_what_is_written(tmp_path: Path) -> None:
    orders = "\x1b]0;title\x07so\x9b31m\r\tit\x7f"
    assert printable(orders) == r"\x1b]0;title\x07so\x9b31m\r" + "\tit" + r"\x7f"
    assert printable("naïve 🎉 ‮") == "naïve 🎉 ‮"
    batch = AnsweredBatch({"text": [orders]}, ["a\x1b[2J", "b"], "classification", np.array([[1.0, 0.0]]))
    (line,) = text_lines(batch)
    assert "\x1b" not in line and "\x9b" not in line and line.startswith(r"a\x1b[2J")
    outputs = np.array([[2.0, -1.0, 1.0], [-1.0, -1.0, -1.0], [np.nan] * 3])
    several = AnsweredBatch({"text": ["a", "b", "c"]}, ["joy", "fear", "calm"], "multilabel", outputs)
    assert [*text_lines(several)] == ["joy 0.8808, calm 0.7311\ta", "(none)\tb", "\tc"]
    first, *others = map(json.loads, json_lines(several, ""))
    assert first["labels"] == ["joy", "calm"] and [row["labels"] for row in others] == [[], None]
    assert first["probabilities"] == {"joy": 0.880797, "fear": 0.268941, "calm": 0.731059}
    columns = several.flat()
    assert columns["labels"] == ['["joy", "calm"]', "[]", None]
    assert columns["probability_fear"] == [0.268941, 0.268941, None]
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    require_other(tmp_path / "c", tmp_path / "a")
    require_other(None, tmp_path / "a")
    with pytest.raises(PotstillError, match="b: the file that is read"):
        require_other(tmp_path / "b", tmp_path / "a")


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_the_whole_path_to_a_value_is_checked(tmp_path: Path, suffix: str) -> None:
    rows = [{"data": {"text": None}}, {"data": {"text": "so"}}]
    path = tmp_path / f"a.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    assert [batch.columns["data.text"] for batch in read_batches(path, ["data.text"])] == [[None, "so"]]
    for wrong in ("data.txt", "data.tex", "date.text"):
        with pytest.raises(PotstillError, match=f"no column '{wrong}'; there are"):
            next(read_batches(path, [wrong]))
        assert next(read_batches(path, [wrong], [wrong])).columns[wrong] == [None, None]


def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = compressed("".join(f"a text number {n}\n" for n in range(50_000)).encode(), ".gz")
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert sum(len(batch) for batch in read_batches(pipe, ["text"])) == 50_000
    writer.join()
    with pytest.raises(PotstillError, match="Parquet is read from its end"), open_input(pipe, ReadOptions("parquet")):
        pass
