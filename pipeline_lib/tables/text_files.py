"""The rows of text files, with their numbers: delimited columns, and JSON."""

import csv
import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.tables.dialects import Dialect
from pipeline_lib.tables.faults import not_json
from pipeline_lib.tables.lines import Lines

_GAP = re.compile(r"[\s,]*")
_CHUNK = 1 << 16


def delimited_rows(
    lines: Lines, dialect: Dialect, keep_faulty: bool = False
) -> Iterator[tuple[int, list[str] | PotstillError]]:
    """Yield the cells of each row, the header line included, and the number of its first line.

    Blank lines are rows without cells.

    :param keep_faulty: whether the error of a row takes the place of its cells.
    """
    rest = islice(lines, dialect.skipped, None)
    if not dialect.quoted:
        for number, line in enumerate(rest, dialect.skipped + 1):
            text = line.rstrip("\r\n")
            yield number, text.split(dialect.separator) if text else []
        return
    reader = csv.reader(rest, delimiter=dialect.separator, strict=True)
    number = dialect.skipped + 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            fault = PotstillError(
                f"{lines.name}: row {number} is not valid CSV ({error}). Quote texts that contain a "
                f"{dialect.separator_name} or quotation marks, and double the marks inside; or read the file without "
                "quoting."
            )
            # A quote that nobody closes takes all rows after it.
            if not keep_faulty or "end of data" in str(error):
                raise fault from error
            cells = fault
        if cells is None:
            return
        yield number, cells
        number = dialect.skipped + reader.line_num + 1


def json_rows(lines: Lines, keep_faulty: bool = False) -> Iterator[tuple[int, dict[str, Any] | PotstillError]]:
    """Yield the objects of a file: one per line, with the line's number, or those of an array.

    In an array, which may all be on one line, the objects themselves are numbered.

    :param keep_faulty: whether the error of a row takes the place of its object; what is no JSON in
        an array hides where the next one begins.
    """
    is_array = lines.sample.lstrip().startswith("[")
    for number, row in _array(lines) if is_array else _objects(lines):
        fault = row if isinstance(row, PotstillError) else None
        if fault is None and not isinstance(row, dict):
            fault = PotstillError(
                f"{lines.name}: row {number} is not a JSON object. Write one per line, or an array of objects."
            )
        if fault is not None and not keep_faulty:
            raise fault
        yield number, fault or row


def _objects(lines: Lines) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row: Any = lines.fault_of(line, number)
        try:
            row = json.loads(line) if row is None else row
        # Numbers with thousands of digits are ValueErrors, too.
        except (ValueError, RecursionError) as error:
            row = not_json(f"{lines.name}: row {number}", _reason(error))
        yield number, row


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, character {error.colno}"
    return str(error)


def _array(lines: Lines) -> Iterator[tuple[int, Any]]:
    """Yield the values of an array, of which only a part is in memory."""
    decode, chunks = json.JSONDecoder().raw_decode, lines.chunks()
    text = next(chunks).lstrip()[1:]
    number, position = 1, 0
    while True:
        position = _GAP.match(text, position).end()  # type: ignore[union-attr]
        try:
            if text.startswith("]", position):
                return
            value, position = decode(text, position)
        except (ValueError, RecursionError) as error:
            more = "".join(islice(chunks, 1 + (len(text) - position) // _CHUNK))
            if not more:
                reason = getattr(error, "msg", str(error))
                raise not_json(f"{lines.name}: row {number}", reason) from error
            text, position = text[position:] + more, 0
            continue
        yield number, value
        number += 1
