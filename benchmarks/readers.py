"""Readers of other people's files: what they get right, and how fast they are.

    python benchmarks/readers.py

Small files of every kind that people have, each with its rows or the fault that must be reported
with its row, are read by this project's reader, pyarrow, DuckDB and pandas, with all columns as
text.  Then a CSV of a million rows is read by each, in turn, and its peak memory taken.
"""

import csv
import gzip
import json
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import typer
from harness import Out, Repeats

Rows = list[tuple[str, str]]
ROWS: Rows = [("a b", "1"), ("c", "0")]
FAULT = "row 3"
LONG = "word " * 60_000
CASES: dict[str, tuple[str, bytes, Rows | str]] = {
    "comma": ("csv", b"text,label\na b,1\nc,0\n", ROWS),
    "semicolon": ("csv", b"text;label\na b;1\nc;0\n", ROWS),
    "bar": ("csv", b"text|label\na b|1\nc|0\n", ROWS),
    "tab in .csv": ("csv", b"text\tlabel\na b\t1\nc\t0\n", ROWS),
    "Excel's sep= line": ("csv", b"sep=;\ntext;label\na b;1\nc;0\n", ROWS),
    "byte order mark": ("csv", b"\xef\xbb\xbftext,label\na b,1\nc,0\n", ROWS),
    "CRLF": ("csv", b"text,label\r\na b,1\r\nc,0\r\n", ROWS),
    "CR": ("csv", b"text,label\ra b,1\rc,0\r", ROWS),
    "UTF-16": ("csv", "text,label\nä b,1\nc,0\n".encode("utf-16"), [("ä b", "1"), ("c", "0")]),
    "Windows-1252": (
        "csv",
        ("text,label\n" + "Die Gebühr für Gäste ist fällig,1\n" * 20).encode("cp1252"),
        [("Die Gebühr für Gäste ist fällig", "1")] * 20,
    ),
    "gzip": ("csv", gzip.compress(b"text,label\na b,1\nc,0\n"), ROWS),
    "quotes and line ends": ("csv", b'text,label\n"a ""b""\nc",1\nd,0\n', [('a "b"\nc', "1"), ("d", "0")]),
    "U+2028 in a text": ("csv", "text,label\na\u2028b,1\nc,0\n".encode(), [("a\u2028b", "1"), ("c", "0")]),
    "numbers stay as written": ("csv", b"text,label\na,01\nb,1.0\n", [("a", "01"), ("b", "1.0")]),
    "NA is a text": ("csv", b"text,label\nNA,1\nnull,0\n", [("NA", "1"), ("null", "0")]),
    "blank lines": ("csv", b"text,label\n\na b,1\n\nc,0\n\n", ROWS),
    "300,000 characters": ("csv", f"text,label\n{LONG},1\n".encode(), [(LONG, "1")]),
    "GLUE's quotes": ("tsv", b'text\tlabel\n"so\t1\nand "so"\t0\n', [('"so', "1"), ('and "so"', "0")]),
    "quoted TSV": ("tsv", b'text\tlabel\n"so ""so"""\t1\nc\t0\n', [('so "so"', "1"), ("c", "0")]),
    "a JSON array": ("json", json.dumps([{"text": text, "label": label} for text, label in ROWS]).encode(), ROWS),
    "a row too short": ("csv", b"text,label\na,1\nb\nc,0\n", FAULT),
    "a row too long": ("csv", b"text,label\na,1\nb,c,0\n", FAULT),
    "an open quote": ("csv", b'text,label\na,1\n"b,0\nc,1\n', FAULT),
    "text after a quote": ("csv", b'text,label\na,1\n"b"c,0\n', FAULT),
    "a column twice": ("csv", b"text,text,label\na,b,1\n", "text"),
    "a truncated gzip": (
        "csv",
        gzip.compress(b"text,label\n" + b"a,1\n" * 5000)[:-20],
        "truncated|damaged|end of stream|end-of-stream",
    ),
}
"""A suffix, the content, and the rows; or what an error must name."""


def ours(path: Path) -> Rows:
    """Read with this project's reader, as an index reads sentences: the labels are their ids."""
    from pipeline_lib.commands.sentences import read_rows

    rows: Rows = []
    for batch in read_rows(path, "text", "label"):
        rows += zip(batch.texts, batch.ids, strict=True)
    return rows


def with_pyarrow(path: Path) -> Rows:
    """Read with pyarrow, which has to be told the separator and the types."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv
    from pyarrow import json as arrow_json

    with pa.input_stream(path, compression="detect" if path.suffix == ".gz" else None) as stream:
        if path.suffix == ".json":
            read = arrow_json.read_json(stream)
        else:
            read = arrow_csv.read_csv(
                stream,
                arrow_csv.ReadOptions(use_threads=False),
                arrow_csv.ParseOptions(
                    delimiter="\t" if path.suffix == ".tsv" else ",",
                    quote_char=False if path.suffix == ".tsv" else '"',
                    newlines_in_values=True,
                ),
                arrow_csv.ConvertOptions(
                    column_types={"text": pa.string(), "label": pa.string()}, strings_can_be_null=False
                ),
            )
    return list(zip(read["text"].to_pylist(), read["label"].to_pylist(), strict=True))


def with_duckdb(path: Path) -> Rows:
    """Read with DuckDB, which detects the dialect itself."""
    import duckdb

    way = "read_json" if path.suffix == ".json" else "read_csv"
    options = ", maximum_object_size=400000" if path.suffix == ".json" else ", all_varchar=true"
    return duckdb.sql(f"SELECT text, label FROM {way}('{path}'{options})").fetchall()


def with_pandas(path: Path) -> Rows:
    """Read with pandas, its options set for texts."""
    import pandas as pd

    if path.suffix == ".json":
        frame = pd.read_json(path, dtype=False)
    else:
        options = {"sep": "\t", "quoting": csv.QUOTE_NONE} if path.suffix == ".tsv" else {}
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    return list(zip(frame["text"].tolist(), frame["label"].tolist(), strict=True))


READERS: dict[str, Callable[[Path], Rows]] = {
    "this project": ours,
    "pyarrow": with_pyarrow,
    "DuckDB": with_duckdb,
    "pandas": with_pandas,
}


def verdict(read: Callable[[Path], Rows], path: Path, expected: Rows | str) -> str:
    """Return how a reader deals with a file: right, wrong rows, or an error and what it names."""
    try:
        rows = read(path)
    except Exception as error:
        if isinstance(expected, list):
            return "rejected"
        named = any(word in str(error).lower() for word in expected.split("|"))
        return "right" if named or "line 3" in str(error).lower() else "error without the row"
    if isinstance(expected, list):
        return "right" if [tuple(row) for row in rows] == expected else "wrong rows"
    return "no error"


ROW_COUNT = 1_000_000


def cost(name: str, path: Path) -> tuple[float, float]:
    """Return the seconds that a reader takes for all rows, and the MiB that it adds."""
    return _cost(READERS[name], len, path)


def stream_cost(path: Path) -> tuple[float, float]:
    """Return the seconds and the MiB that this project's reader takes batch by batch."""
    from pipeline_lib.commands.sentences import read_rows

    return _cost(lambda file: read_rows(file, "text", "label"), lambda all_: sum(map(len, all_)), path)


def _cost(read: Callable[[Path], Any], count: Callable[[Any], int], path: Path) -> tuple[float, float]:
    """Count a file's rows once a small one has been read; return the seconds and the MiB added."""
    count(read(path.with_name("small.csv")))
    before = harness.peak_mib(resource.RUSAGE_SELF)

    def read_all() -> None:
        assert count(read(path)) == ROW_COUNT

    return harness.seconds(read_all), harness.peak_mib(resource.RUSAGE_SELF) - before


def try_cases(folder: Path) -> dict[str, dict[str, str]]:
    """Return how each reader deals with each of the files."""
    verdicts: dict[str, dict[str, str]] = {}
    for number, (case, (suffix, content, expected)) in enumerate(CASES.items()):
        path = folder / f"{number}.{suffix}{'.gz' if 'gzip' in case else ''}"
        path.write_bytes(content)
        verdicts[case] = {n: verdict(read, path, expected) for n, read in READERS.items()}
    return verdicts


def main(repeats: Repeats = 3, out: Out = harness.RESULTS) -> None:
    """Try the cases, time the million rows, and write the tables."""
    with tempfile.TemporaryDirectory() as folder:
        # Not in this process: a child's peak memory begins with its parent's.
        verdicts = harness.alone(try_cases, Path(folder))
        rates, memory, stream = _speed(Path(folder), repeats)
    right = {n: sum(case[n] == "right" for case in verdicts.values()) for n in READERS}
    lines = ["# Readers of other people's files", ""]
    lines += harness.table(["file", *READERS], ([case, *each.values()] for case, each in verdicts.items()))
    lines += ["", f"Right: {', '.join(f'{n} {count} of {len(CASES)}' for n, count in right.items())}."]
    lines += ["", "A CSV of a million rows (text and label, 72 MB), into a list of tuples:", ""]
    speeds = []
    for name in READERS:
        relative = harness.spread(harness.ratio(rates[name], rates["this project"]), "{:.2f}")
        speeds.append([name, harness.spread(harness.summary(rates[name])), relative, f"{memory[name]:,.0f}"])
    lines += harness.table(["reader", "rows per second", "ratio", "MiB"], speeds)
    lines += ["", f"Batch by batch, this project's reader takes {stream:,.0f} MiB for the same file."]
    results = {
        "facts": harness.facts(["pyarrow", "duckdb", "pandas", "charset-normalizer"], 2, "as set by each"),
        "verdicts": verdicts,
        "right": right,
        "rows_per_second": rates,
        "mib": memory,
        "stream_mib": stream,
    }
    harness.write_results("readers", results, lines, out)


def _speed(folder: Path, repeats: int) -> tuple[dict[str, list[float]], dict[str, float], float]:
    path = folder / "million.csv"
    (folder / "small.csv").write_text("text,label\na,1\n")
    with path.open("w", encoding="utf-8", newline="") as sink:
        writer = csv.writer(sink)
        writer.writerow(["text", "label"])
        for n in range(ROW_COUNT):
            words = f"A {n} of the film, its cast, and a “quoted” remark for row {n}"
            writer.writerow([words, n % 2])
    memory: dict[str, float] = {}

    def rate(name: str) -> float:
        taken, memory[name] = harness.alone(cost, name, path)
        return ROW_COUNT / taken

    contestants = {name: lambda name=name: rate(name) for name in READERS}
    return harness.take_turns(contestants, repeats), memory, harness.alone(stream_cost, path)[1]


if __name__ == "__main__":
    typer.run(main)
