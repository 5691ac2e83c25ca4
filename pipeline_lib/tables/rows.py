"""Reading rows of text files: TSV without quoting, CSV, JSON lines and Parquet.

Every value is returned as a string, as given: params.yaml says which strings mean which label, and
nothing is guessed here.  Rows are counted from 1, a header line included, so that a message's row
number is the one that an editor shows, unless texts in a CSV file span several lines.
"""

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import unreadable
from pipeline_lib.base.unicode import has_surrogates

FIRST_ROW = b"first_row"
"""Key of a table's metadata: the row number, in the file, of the table's first row."""


def read_rows(
    path: Path,
    format: str,
    columns: list[str] | None,
    wanted: Sequence[str],
    optional: Sequence[str] = (),
    short_rows: bool = False,
) -> pa.Table:
    """Return the wanted columns as strings; nulls become empty strings.

    :param path: the file; UTF-8, with or without a byte order mark; LF or CRLF.
    :param format: ``tsv`` (tab-separated, no quoting) | ``csv`` | ``jsonl`` | ``parquet``.
    :param columns: names of the columns of a headerless tsv or csv file.  A file whose first row
        holds all required names is read as having a header anyway, as CoLA's test file does.
    :param wanted: the columns to return.
    :param optional: those of them that may be absent, such as the labels of a test file.
    :param short_rows: whether rows of a tsv file may lack columns, which become empty strings.
    :raises DistilleryError: naming the file, the row or column, and the remedy.
    """
    required = [name for name in wanted if name not in optional]
    if not Path(path).is_file():
        raise DistilleryError(f"{path}: not found. Check the source's file names in params.yaml.")
    if format == "parquet":
        return _read_parquet(path, wanted, required)
    if format == "jsonl":
        return _read_jsonl(path, wanted, required)
    return _read_delimited(path, format, columns, wanted, required, short_rows)


def _read_delimited(
    path: Path,
    format: str,
    columns: list[str] | None,
    wanted: Sequence[str],
    required: list[str],
    short_rows: bool,
) -> pa.Table:
    text = _decode(path)
    records = _csv_records(path, text) if format == "csv" else _tsv_records(text)
    header = bool(records) and (columns is None or set(required) <= set(records[0]))
    rows = records[1:] if header else records
    if not rows:
        raise _no_rows(path)
    names = records[0] if header else columns or []
    _check_columns(path, names, required)
    first = 2 if header else 1
    if short_rows:
        rows = [row + [""] * (len(names) - len(row)) for row in rows]
    _check_widths(path, format, rows, len(names), first)
    chosen = [name for name in wanted if name in names]
    places = [names.index(name) for name in chosen]
    return _table({n: [row[i] for row in rows] for n, i in zip(chosen, places, strict=True)}, first)


def _tsv_records(text: str) -> list[list[str]]:
    # Not splitlines(): texts contain characters (U+2028, U+0085) that it treats as line ends.
    lines = text.split("\n")
    while lines and not lines[-1].strip("\r"):
        lines.pop()
    return [line.removesuffix("\r").split("\t") for line in lines]


def _csv_records(path: Path, text: str) -> list[list[str]]:
    records: list[list[str]] = []
    # By default the reader rejects fields of more than 131,072 characters; no field is longer than
    # the file.
    limit = csv.field_size_limit(len(text) + 1)
    try:
        for record in csv.reader(io.StringIO(text, newline=""), strict=True):
            records.append(record)
    except csv.Error as error:
        raise DistilleryError(
            f"{path}: row {len(records) + 1} is not valid CSV ({error}). Quote texts with commas "
            "or quotes, and double the quotes inside; or set `format: tsv`."
        ) from error
    finally:
        csv.field_size_limit(limit)
    while records and not any(records[-1]):
        records.pop()
    return records


def _check_widths(path: Path, format: str, rows: list[list[str]], width: int, first: int) -> None:
    for number, row in enumerate(rows, first):
        if len(row) != width:
            between = "tab" if format == "tsv" else "comma"
            raise DistilleryError(
                f"{path}: row {number} has {len(row)} columns, not {width}. Separate them "
                f"by one {between}; correct the row, or `format` and `columns` in params.yaml."
            )


def _read_jsonl(path: Path, wanted: Sequence[str], required: list[str]) -> pa.Table:
    lines = _decode(path).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise _no_rows(path)
    rows = [_json_row(path, number, line) for number, line in enumerate(lines, 1)]
    for number, row in enumerate(rows, 1):
        for name in required:
            if name not in row:
                raise DistilleryError(
                    f"{path}: row {number} has no key {name!r}, only {', '.join(row) or 'none'}. "
                    "Add it, or correct the column's name in params.yaml."
                )
    chosen = [name for name in wanted if any(name in row for row in rows)]
    return _table(
        {name: _strings(path, name, [row.get(name) for row in rows]) for name in chosen}, 1
    )


def _json_row(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DistilleryError(
            f"{path}: row {number} is not valid JSON ({error.msg}, character {error.colno}). "
            "Write one object per line."
        ) from error
    except (ValueError, RecursionError) as error:  # such as an integer of thousands of digits
        raise DistilleryError(
            f"{path}: row {number} cannot be read as JSON ({error}). Write one object per line."
        ) from error
    if not isinstance(row, dict):
        raise DistilleryError(f"{path}: row {number} is not a JSON object. Write one per line.")
    return row


def _read_parquet(path: Path, wanted: Sequence[str], required: list[str]) -> pa.Table:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _check_columns(path, names, required)
            chosen = [name for name in wanted if name in names]
            read = file.read(columns=chosen)
            values = {name: read[name].to_pylist() for name in chosen}
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise DistilleryError(
            f"{path}: not a readable Parquet file ({error}). Correct `format` in params.yaml, or "
            "write the file again."
        ) from error
    if not read.num_rows:
        raise _no_rows(path)
    return _table({name: _strings(path, name, values[name]) for name in chosen}, 1)


def _strings(path: Path, name: str, values: list[Any]) -> list[str]:
    return [_as_text(value, path, name, number) for number, value in enumerate(values, 1)]


def _as_text(value: Any, path: Path, name: str, number: int) -> str:
    """Return a value's plain form: 1 and 1.0 are both ``1``, 2.5 is ``2.5``, null is empty."""
    if isinstance(value, str):
        if has_surrogates(value):
            raise DistilleryError(
                f"{path}: row {number}, column {name!r} holds half a surrogate pair, which is no "
                "character. Write the text as UTF-8, or escape both halves."
            )
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        # Many tools turn integer columns with gaps into floats, and the gaps into NaN.
        if math.isnan(value):
            return ""
        return str(int(value)) if value.is_integer() else repr(value)
    raise DistilleryError(
        f"{path}: row {number}, column {name!r} holds a {type(value).__name__}, not a text or a "
        "number. Write plain values."
    )


def _decode(path: Path) -> str:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        raise DistilleryError(
            f"{path}: row {row} is not UTF-8 (byte 0x{content[error.start]:02x}). Save "
            "the file as UTF-8."
        ) from error


def _check_columns(path: Path, names: list[str], required: list[str]) -> None:
    for name in required:
        if name not in names:
            raise DistilleryError(
                f"{path}: no column {name!r}; there are {', '.join(map(repr, names))}. Correct "
                "the name in params.yaml, or list `columns` if the file has no header line."
            )
        if names.count(name) > 1:
            raise DistilleryError(
                f"{path}: column {name!r} appears {names.count(name)} times. Name each column once."
            )


def _table(columns: dict[str, list[str]], first: int) -> pa.Table:
    arrays = {name: pa.array(values, pa.large_string()) for name, values in columns.items()}
    return pa.table(arrays).replace_schema_metadata({FIRST_ROW: str(first).encode()})


def _no_rows(path: Path) -> DistilleryError:
    return DistilleryError(f"{path}: no rows. Put labelled texts into it, one per row.")
