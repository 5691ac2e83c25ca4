"""CSV and TSV in the wild: which separator they use, and whether there is a header line."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.tables.decoding import read_text
from pipeline_lib.tables.rows import read_rows

_SEPARATORS = ",;\t|"
_RECORDS, SIGNS = 50, 1_000_000
"""Records and characters at the start of a file that are used to detect the separator."""
_FEW = 50
"""The most distinct values of a column with recurring values."""
_SHOWN = 8
"""How many row numbers a message lists."""
_SENTENCE = 4
"""From this many words on, an entry of the first line is not a name, if all are that long."""


Delimited = tuple[pa.Table, int, str | None, list[str] | None]
"""A table, the row number of its first row, the format in which the pipeline reads it (or None),
and the column names of a file without a header line."""


def read_delimited(
    path: Path, format: str, columns: list[str] | None, short_rows: bool = False
) -> Delimited:
    """Read a file of separated columns.

    :param format: csv, with any separator, or tsv, which has no quoting.
    :param columns: names of the columns, if there is no header line.
    :param short_rows: whether rows of a tsv file may end early; their other columns are empty.
    :raises DistilleryError: naming file and row, if it cannot be read.
    """
    text = read_text(path).lstrip("\r\n")
    if text[:4].lower() == "sep=":
        raise DistilleryError(
            f"{path}: {text[:5]!r} in row 1 is Excel's own, not a header line. Remove the row."
        )
    quoting = {"quoting": csv.QUOTE_NONE} if format == "tsv" else {}
    separator = "\t" if format == "tsv" else separator_of(text)
    standard_format = format if separator == ("\t" if format == "tsv" else ",") else None
    header = next(iter(_first_records(text, separator, **quoting)), [])
    short = short_rows and format == "tsv" and _ends_early(text, len(header))
    readable = None if short else standard_format
    other = columns is None or len(columns) != len(header)
    if other and not any(map(_is_number, header)) and not _is_sentences(header):
        # In a data set without header lines, some files may have one, such as CoLA's test file.
        names = [name for name in header if name.strip()]
        check_once(path, names)
        table = _records(path, standard_format, separator, None, names, short)
        again = _header_rows(table)
        if not _repeats_header(table, len(again)):
            if again:
                raise DistilleryError(
                    f"{path}: row {', '.join(map(str, again[:_SHOWN]))} repeats the header line. "
                    "Remove it, so that only the first row has the names of the columns."
                )
            return table, 2, readable, None
    names = columns or numbered(len(header))
    if len(names) != len(header):
        raise DistilleryError(
            f"{path}: {len(header)} columns, and --columns names {len(names)}. Name them all."
        )
    if columns is not None and set(columns) <= set(header):
        return _records(path, standard_format, separator, None, names, short), 2, readable, names
    return _records(path, standard_format, separator, names, names, short), 1, readable, names


def numbered(columns: int) -> list[str]:
    """Return names for columns that have none."""
    return [f"column_{number}" for number in range(1, columns + 1)]


def check_once(path: Path, names: Sequence[str]) -> None:
    """Refuse a file in which several columns have the same name.

    :raises DistilleryError: naming it.
    """
    for name in names:
        if names.count(name) > 1:
            raise DistilleryError(
                f"{path}: column {name!r} occurs {names.count(name)} times. Give each column a "
                "name of its own."
            )


def _records(
    path: Path,
    format: str | None,
    separator: str,
    columns: list[str] | None,
    names: list[str],
    short_rows: bool,
) -> pa.Table:
    """Return a delimited file's columns.

    :param columns: the names, for a file without a header line; :param names: those to return.
    :param short_rows: whether rows end early; see :func:`read_delimited`.
    """
    if format is not None:
        optional = names if columns is None else ()
        return read_rows(path, format, columns, names, optional, short_rows)
    rows = _separated(path, separator)
    header = columns or rows[0]
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise DistilleryError(
                f"{path}: row {number} has {len(row)} columns, not {len(header)}. Columns are "
                f"separated by one {separator!r}; correct the row."
            )
    rows = rows if columns else rows[1:]
    if not rows:
        raise DistilleryError(f"{path}: no rows. Put labelled texts into it, one per row.")
    arrays = {
        name: pa.array([row[header.index(name)] for row in rows], pa.large_string())
        for name in names
    }
    return pa.table(arrays)


def _separated(path: Path, separator: str) -> list[list[str]]:
    text = read_text(path)
    rows: list[list[str]] = []
    try:
        with _fields_of_any_length(text):
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True):
                rows.append(row)
    except csv.Error as error:
        raise DistilleryError(
            f"{path}: row {len(rows) + 1} is not valid CSV ({error}). Quote texts that contain "
            f"{separator!r} or quotes, and double the quotes inside."
        ) from error
    return [row for row in rows if row]


def separator_of(text: str) -> str:
    """Return the separator: one that splits the first rows alike, or else the most frequent."""
    line = re.sub(r'"[^"]*"', "", re.split(r"[\r\n]", text, maxsplit=1)[0])
    counts = {sign: line.count(sign) for sign in _SEPARATORS if sign in line}
    alike = [
        sign
        for sign in counts
        if len({len(record) for record in _first_records(text, sign) if record}) == 1
    ]
    return max(alike or counts, key=counts.__getitem__, default=",")


def _first_records(text: str, separator: str, **quoting: Any) -> list[list[str]]:
    """Return the first records that can be read; faults are found when all are read."""
    rows: list[list[str]] = []
    start = text[:SIGNS]
    reader = csv.reader(io.StringIO(start, newline=""), delimiter=separator, **quoting)
    with suppress(csv.Error), _fields_of_any_length(start):
        rows += islice(reader, _RECORDS)
    # The last one may be truncated.
    return rows[:-1] if len(start) < len(text) and 1 < len(rows) < _RECORDS else rows


@contextmanager
def _fields_of_any_length(text: str) -> Iterator[None]:
    """Lift the reader's limit on the length of fields to that of the text."""
    limit = csv.field_size_limit(len(text) + 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _ends_early(text: str, columns: int) -> bool:
    """Whether a row of a tsv file has fewer columns than its first one."""
    return any(row.count("\t") + 1 < columns for row in text.rstrip("\r\n").split("\n"))


def _is_sentences(header: Sequence[str]) -> bool:
    """Whether a first line has only texts; survey questions come with a time or a name."""
    return bool(header) and all(len(name.split()) >= _SENTENCE for name in header)


def _header_rows(table: pa.Table) -> list[int]:
    """Return the numbers of the rows that equal the header line, as where files were joined."""
    names = tuple(table.column_names)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    # A single column may have its first text again.
    return [number for number, row in enumerate(rows, 2) if row == names and len(names) > 1]


def _repeats_header(table: pa.Table, again: int) -> bool:
    """Whether a name in the first line is also a value of its column, so a label, not a name.

    :param again: the number of rows that equal the first line, which say nothing.
    """
    for name in table.column_names:
        counts = Counter(table[name].to_pylist())
        if counts[name] > again and len(counts) <= _FEW:
            return True
    return False


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
