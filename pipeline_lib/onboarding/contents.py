"""What stands in files: all columns as text, whatever the format, with every row's number."""

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import unreadable
from pipeline_lib.onboarding.given import FORMATS
from pipeline_lib.tasks.tables import FIRST_ROW, read_rows

_SEPARATORS = ",;\t|"
_FEW = 50
"""Different values of a column that repeats itself."""


@dataclass(frozen=True)
class Content:
    """The rows of one split.

    :ivar paths: its files; :ivar table: all columns, each as text, "" where there is no value.
    :ivar starts: of each file, its first row in the table, and that row's number in the file.
    :ivar format: in which the pipeline reads it; None: it has to be written anew.
    :ivar columns: the names of a file that has no header line.
    :ivar class_names: by column, the names that its metadata has for 0, 1, 2, …
    """

    paths: list[Path]
    table: pa.Table
    starts: list[tuple[int, int]]
    format: str | None
    columns: list[str] | None = None
    class_names: dict[str, list[str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return self.table.column_names

    def values(self, column: str) -> list[str]:
        """Return a column's values, without spaces at their ends."""
        return [value.strip() for value in self.table[column].to_pylist()]

    def place(self, row: int) -> tuple[Path, int]:
        """Return the file of a row of the table, and the row's number as an editor shows it."""
        number = max(n for n, (start, _) in enumerate(self.starts) if start <= row)
        start, first = self.starts[number]
        return self.paths[number], first + row - start


@dataclass(frozen=True)
class _File:
    table: pa.Table
    first: int
    format: str | None
    columns: list[str] | None = None
    class_names: dict[str, list[str]] = field(default_factory=dict)


def read_content(paths: Sequence[Path], columns: list[str] | None = None) -> Content:
    """Read a split's files, one behind the other.

    :param columns: names of the columns, where there is no header line.
    :raises DistilleryError: naming file and row, if one cannot be read.
    """
    files = [_read(path, columns) for path in paths]
    starts, rows = [], 0
    for file in files:
        starts.append((rows, file.first))
        rows += file.table.num_rows
    first = files[0]
    names = [n for n in first.table.column_names if all(n in f.table.column_names for f in files)]
    table = pa.concat_tables([file.table.select(names) for file in files])
    same = len(files) == 1
    format = first.format if same else None
    return Content([*paths], table, starts, format, first.columns, first.class_names)


def _read(path: Path, columns: list[str] | None) -> _File:
    format = FORMATS[path.suffix.lower()]
    if format in ("csv", "tsv"):
        return _read_delimited(path, format, columns)
    if format == "jsonl":
        return _plain(path, format, _json_names(path))
    if format == "parquet":
        schema = _schema(path)
        names = [field.name for field in schema if _is_plain(field.type)]
        return _plain(path, format, names, _class_names(schema))
    if format == "arrow":
        return _read_arrow(path)
    lines = [line for line in _text(path).split("\n") if line.strip()]
    return _File(pa.table({"text": pa.array(lines, pa.large_string())}), 1, None)


def _plain(
    path: Path, format: str, names: list[str], class_names: dict[str, list[str]] | None = None
) -> _File:
    """Read a file as the pipeline does."""
    if not names:
        raise DistilleryError(f"{path}: no columns of plain values. Write texts and labels.")
    table = read_rows(path, format, None, names, names)
    return _File(table, int(table.schema.metadata[FIRST_ROW]), format, None, class_names or {})


def _read_delimited(path: Path, format: str, columns: list[str] | None) -> _File:
    line = _text(path).lstrip("\n").split("\n", 1)[0]
    separator = "\t" if format == "tsv" else _separator(line)
    own = format if separator == ("\t" if format == "tsv" else ",") else None
    quoting = {"quoting": csv.QUOTE_NONE} if format == "tsv" else {}
    header = next(csv.reader([line.rstrip("\r")], delimiter=separator, **quoting), [])
    other = columns is None or len(columns) != len(header)
    if other and not any(map(_is_number, header)):
        # Some files of a set without header lines may have one, as CoLA's test file.
        names = [name for name in header if name.strip()]
        _check_once(path, names)
        table = _records(path, own, separator, None, names)
        if not _repeats_header(table):
            return _File(table, 2, own)
    names = columns or [f"column_{number}" for number in range(1, len(header) + 1)]
    if len(names) != len(header):
        raise DistilleryError(
            f"{path}: {len(header)} columns, and --columns names {len(names)}. Name each."
        )
    if columns is not None and set(columns) <= set(header):
        return _File(_records(path, own, separator, None, names), 2, own, names)
    return _File(_records(path, own, separator, names, names), 1, own, names)


def _records(
    path: Path, format: str | None, separator: str, columns: list[str] | None, names: list[str]
) -> pa.Table:
    """Return a delimited file's columns.

    :param columns: the names of a file without header line; :param names: those to return.
    """
    if format is not None:
        return read_rows(path, format, columns, names, names if columns is None else ())
    rows = list(csv.reader(io.StringIO(_text(path), newline=""), delimiter=separator))
    rows = [row for row in rows if row]
    header = columns or rows[0]
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise DistilleryError(
                f"{path}: row {number} has {len(row)} columns, not {len(header)}. One "
                f"{separator!r} stands between columns; correct the row."
            )
    rows = rows if columns else rows[1:]
    arrays = {
        name: pa.array([row[header.index(name)] for row in rows], pa.large_string())
        for name in names
    }
    return pa.table(arrays)


def _separator(line: str) -> str:
    bare = re.sub(r'"[^"]*"', "", line)
    counts = {sign: bare.count(sign) for sign in _SEPARATORS}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] else ","


def _check_once(path: Path, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DistilleryError(
                f"{path}: column {name!r} stands {names.count(name)} times. Name each column once."
            )


def _repeats_header(table: pa.Table) -> bool:
    """Whether a name in the first line is a value of its column, and so no name: a label."""
    for name in table.column_names:
        values = set(table[name].to_pylist())
        if name in values and len(values) <= _FEW:
            return True
    return False


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _json_names(path: Path) -> list[str]:
    """Return the keys under which all lines have plain values; faults are found on reading."""
    plain: dict[str, bool] = {}
    for line in _text(path).split("\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        for name, value in row.items() if isinstance(row, dict) else ():
            plain[name] = plain.get(name, True) and not isinstance(value, list | dict)
    return [name for name, own in plain.items() if own]


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise DistilleryError(
            f"{path}: not a readable Parquet file ({error}). Write the file again."
        ) from error


def _is_plain(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    return any(kind(type_) for kind in (*kinds, pa.types.is_floating, pa.types.is_boolean))


def _class_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the names of the columns that ``datasets`` wrote as a ClassLabel."""
    try:
        said = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    except ValueError:
        return {}
    features: dict[str, Any] = said.get("info", {}).get("features", {})
    return {
        name: feature["names"]
        for name, feature in features.items()
        if isinstance(feature, dict) and isinstance(feature.get("names"), list)
    }


def _read_arrow(path: Path) -> _File:
    try:
        with pa.memory_map(str(path)) as source:
            try:
                read = pa.ipc.open_stream(source).read_all()
            except pa.ArrowInvalid:
                source.seek(0)
                read = pa.ipc.open_file(source).read_all()
    except (pa.ArrowException, OSError) as error:
        raise DistilleryError(f"{path}: not a readable Arrow file ({error}).") from error
    names = [field.name for field in read.schema if _is_plain(field.type)]
    columns = {name: read[name].cast(pa.large_string()).fill_null("") for name in names}
    return _File(pa.table(columns), 1, None, None, _class_names(read.schema))


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        raise DistilleryError(
            f"{path}: row {row} is not UTF-8. Save the file as UTF-8 (of Excel: CSV UTF-8)."
        ) from error
