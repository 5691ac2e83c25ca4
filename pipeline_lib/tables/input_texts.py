"""Reads the texts to answer from a file or standard input, in batches.

Formats: lines, CSV, TSV, JSON lines and Parquet; only one batch is in memory at a time.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.tables.lines import read_lines

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline_lib.base.text import Text

BATCH = 4096
OTHER_TABLES = (".json", ".arrow", ".feather", ".xls", ".xlsx", ".ods")
"""Suffixes of tables that are not read, and are no lines of text either."""
LONGEST_FIELD = 2**31 - 1
"""The most characters in a CSV field; Python's own limit is 131,072."""


class Input(StrEnum):
    """Input formats: a sentence per line, or a table."""

    lines = "lines"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are read.

    :ivar text: the sentence's column; :ivar second: for pairs, that of the second sentence.
    :ivar keep: columns that are written along with the answers.
    """

    text: str
    second: str | None
    keep: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of the sentences."""
        return (self.text,) if self.second is None else (self.text, self.second)

    @property
    def all(self) -> tuple[str, ...]:
        """All columns, each once."""
        return tuple(dict.fromkeys([*self.texts, *self.keep]))


@dataclass(frozen=True)
class TextBatch:
    """A batch of input rows.

    :ivar columns: name to values, the sentences first.
    :ivar texts: what a student reads; None if the row lacks its sentence, or one of a pair.
    :ivar first: the first row's number in the file, counted from 1 and including a header.
    """

    columns: dict[str, list[Any]]
    texts: "list[Text | None]"
    first: int


def input_of(file: Path | None, option: Input | None) -> Input:
    """Return the format that was named, or the one that the file's suffix implies.

    :raises DistilleryError: if it implies a table in a format that is not read.
    """
    endings = {"." + form.value: form for form in Input} | {".ndjson": Input.jsonl}
    ending = file.suffix.lower() if file else ""
    if option is None and ending in OTHER_TABLES:
        raise DistilleryError(
            f"{file}: not a file of lines. Save it as {', '.join(endings)}; or say how to read it "
            "with --input-format (jsonl: one object per line)."
        )
    return option or endings.get(ending, Input.lines)


def read_batches(file: Path | None, form: Input, columns: Columns) -> Iterator[TextBatch]:
    """Yield the rows of a table; only these columns are read.

    :param file: None for standard input, which works for every format but Parquet.
    :raises DistilleryError: naming the file, the row or column, and the remedy.
    """
    if form is Input.parquet:
        yield from _read_parquet(file, columns)
        return
    first = 1 if form is Input.jsonl else 2
    readers = {Input.csv: _csv_rows, Input.tsv: _tsv_rows, Input.jsonl: _jsonl_rows}
    rows = readers[form](file, columns)
    while batch := list(islice(rows, BATCH)):
        values = {name: list(part) for name, part in zip(columns.all, zip(*batch), strict=True)}  # noqa: B905
        yield _batch(values, columns, first, file)
        first += len(batch)


def line_batches(lines: Iterable[str], pair: bool, size: int = BATCH) -> Iterator[TextBatch]:
    """Yield lines; for pairs, a tab separates the two sentences. A blank line has no sentence.

    :raises DistilleryError: if a line should be a pair and is not.
    """
    rest, names = iter(lines), ("text", "text_pair")[: 1 + pair]
    first, read = 1, _pair if pair else str
    while batch := list(islice(rest, size)):
        texts = [read(line) if line.strip() else None for line in batch]
        sides = zip(*(text or ("", "") for text in texts), strict=True) if pair else [batch]
        yield TextBatch(dict(zip(names, map(list, sides), strict=True)), texts, first)
        first += len(batch)


def as_examples(lines: Iterable[str], is_pair: bool) -> "Iterator[Text]":
    """Yield lines as a student reads them: as they are, or split at the tab into pairs.

    :raises DistilleryError: if a line should be a pair and is not.
    """
    return map(_pair, lines) if is_pair else iter(lines)


def _pair(line: str) -> tuple[str, str]:
    first, tab, second = line.partition("\t")
    if not tab or not first.strip() or not second.strip():
        raise DistilleryError(
            f"{line!r:.80}: not a pair. This student compares two sentences: write both on one "
            "line, separated by a tab."
        )
    return first, second


def parquet_types(file: Path, columns: Columns) -> "dict[str, pa.DataType]":
    """Return the types of the columns that are read from a Parquet file."""
    schema = _parquet(file).schema_arrow
    return {name: schema.field(name).type for name in columns.all if name in schema.names}


def _batch(
    values: dict[str, list[Any]], columns: Columns, first: int, file: Path | None
) -> TextBatch:
    sides = [[_text(v, file, first + n) for n, v in enumerate(values[c])] for c in columns.texts]
    if len(sides) == 1:
        return TextBatch(values, sides[0], first)
    pairs = [None if None in pair else pair for pair in zip(*sides, strict=True)]
    return TextBatch(values, pairs, first)


def _text(value: Any, file: Path | None, row: int) -> str | None:
    """Return the text of a cell, or None if it is empty or blank."""
    if value is not None and not isinstance(value, str):
        raise DistilleryError(
            f"{_name(file)}: row {row}: {value!r:.80} is not text. Name the column of texts with "
            "--text (for pairs also --text2)."
        )
    return value if value and value.strip() else None


def _csv_rows(file: Path | None, columns: Columns) -> Iterator[list[str]]:
    from pipeline_lib.tables.delimited import separator_of

    # The CSV reader needs the line ends: a quoted text may contain some.
    lines = (line + "\n" for line in read_lines(file))
    start = _start(lines)
    separator = separator_of("".join(start).lstrip("\r\n"))
    records = _csv_records(chain(start, lines), file, separator)
    yield from _delimited(records, file, columns, separator)


def _csv_records(lines: Iterable[str], file: Path | None, separator: str) -> Iterator[list[str]]:
    limit, read = csv.field_size_limit(LONGEST_FIELD), 0
    try:
        for record in csv.reader(lines, delimiter=separator, strict=True):
            yield record
            read += 1
    except csv.Error as error:
        raise DistilleryError(
            f"{_name(file)}: row {read + 1} is not valid CSV ({error}). Quote texts that contain "
            f"{separator!r} or quotes, and double the quotes inside; or give --input-format tsv."
        ) from error
    finally:
        csv.field_size_limit(limit)


def _start(lines: Iterator[str]) -> list[str]:
    """Return the lines at the start from which the separator is detected."""
    from pipeline_lib.tables.delimited import SIGNS

    start: list[str] = []
    read = 0
    while read <= SIGNS and (line := next(lines, None)) is not None:
        start.append(line)
        read += len(line)
    return start


def _tsv_rows(file: Path | None, columns: Columns) -> Iterator[list[str]]:
    records = (line.split("\t") if line else [] for line in read_lines(file))
    yield from _delimited(records, file, columns, "\t")


def _delimited(
    records: Iterable[list[str]], file: Path | None, columns: Columns, separator: str
) -> Iterator[list[str]]:
    """Yield the rows after the header; a blank line is only a row if there is just one column."""
    records = iter(records)
    names = next(filter(None, records), [])
    _require(names, file, columns)
    indices = [names.index(name) for name in columns.all]
    for number, record in enumerate(records, 2):
        if not record and len(names) > 1:
            continue
        row = record or [""]
        if len(row) != len(names):
            raise DistilleryError(
                f"{_name(file)}: row {number} has {len(row)} columns, not {len(names)}. Columns "
                f"are separated by one {separator!r}; correct the row."
            )
        yield [row[index] for index in indices]


def _jsonl_rows(file: Path | None, columns: Columns) -> Iterator[list[Any]]:
    from pipeline_lib.tables.nested import values_at

    for number, line in enumerate(read_lines(file), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DistilleryError(
                f"{_name(file)}: line {number} is not valid JSON ({error}). Write one object per "
                "line."
            ) from error
        if not isinstance(row, dict):
            raise DistilleryError(
                f"{_name(file)}: line {number} is not a JSON object, but {line!r:.80}. Write one "
                "object per line."
            )
        paths = [name for name in columns.all if name in columns.texts or name not in row]
        row |= {path: value for path in paths for value in values_at(row, path)}
        _require(list(row), file, Columns(columns.text, columns.second), f"line {number}: ")
        yield [row.get(name) for name in columns.all]


def _read_parquet(file: Path | None, columns: Columns) -> Iterator[TextBatch]:
    opened, first = _parquet(file), 1
    _require(opened.schema_arrow.names, file, columns)
    for part in opened.iter_batches(BATCH, columns=list(columns.all)):
        values = part.to_pydict()
        yield _batch({name: values[name] for name in columns.all}, columns, first, file)
        first += part.num_rows


def _parquet(file: Path | None) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file is None:
        raise DistilleryError(
            "standard input: Parquet needs a file that can be read from its end. Give it as --file."
        )
    try:
        return pq.ParquetFile(file)
    except pa.ArrowException as error:
        raise DistilleryError(f"{file}: not a Parquet file ({error}). Save it again.") from error


def _require(names: list[str], file: Path | None, columns: Columns, where: str = "") -> None:
    for name in columns.all:
        if name not in names:
            option = {columns.text: "--text", columns.second: "--text2"}.get(name, "--keep")
            raise DistilleryError(
                f"{_name(file)}: {where}no column {name!r}; there are "
                f"{', '.join(map(repr, names)) or 'none'}. Name one of them with {option}."
            )
        if names.count(name) > 1:
            raise DistilleryError(
                f"{_name(file)}: column {name!r} occurs {names.count(name)} times. Give each "
                "column a name of its own."
            )


def _name(file: Path | None) -> str:
    return str(file or "standard input")
