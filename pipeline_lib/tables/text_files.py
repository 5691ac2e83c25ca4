"""The rows of text files, with their numbers: delimited columns, and JSON."""

import csv
import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pipeline_lib.tables.dialects import Dialect
from pipeline_lib.tables.faults import not_an_object, not_csv, not_json
from pipeline_lib.tables.lines import Lines

_GAP = re.compile(r"[\s,]*")
_CHUNK = 1 << 16


def delimited_rows(lines: Lines, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row, the header line included, and the number of its first line.

    Blank lines are rows without cells.

    :raises DistilleryError: naming the row that is not valid CSV.
    """
    rest = islice(lines, dialect.skipped, None)
    if not dialect.quoted:
        for number, line in enumerate(rest, dialect.skipped + 1):
            text = line.rstrip("\r\n")
            yield number, text.split(dialect.separator) if text else []
        return
    reader = csv.reader(rest, delimiter=dialect.separator, strict=True)
    number = dialect.skipped + 1
    try:
        for cells in reader:
            yield number, cells
            number = dialect.skipped + reader.line_num + 1
    except csv.Error as error:
        raise not_csv(f"{lines.name}: row {number}", error, dialect.separator_name) from error


def json_rows(lines: Lines) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file: one per line, with the line's number, or those of an array.

    In an array, which may all be on one line, the objects themselves are numbered.

    :raises DistilleryError: naming the row that is no object.
    """
    is_array = lines.sample.lstrip().startswith("[")
    for number, row in _array(lines) if is_array else _objects(lines):
        if not isinstance(row, dict):
            raise not_an_object(f"{lines.name}: row {number}")
        yield number, row


def _objects(lines: Lines) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        # Numbers with thousands of digits are ValueErrors, too.
        except (ValueError, RecursionError) as error:
            raise not_json(f"{lines.name}: row {number}", _reason(error)) from error
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
