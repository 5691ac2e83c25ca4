"""Whole files in memory, for those who do not know them yet: all columns, each as text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.tables.arrow_files import ArrowTable, is_bytes_type, is_plain_type
from pipeline_lib.tables.faults import check_once, no_rows
from pipeline_lib.tables.nested import are_lists_of_names, plain_columns, value_at, with_types
from pipeline_lib.tables.reader import ArrowFile, DelimitedFile, JsonFile, ReadOptions, RowBatch, open_input

_FEW = 50
"""The most distinct values of a column with recurring values."""
_SHOWN = 8
"""How many row numbers a message lists."""
_SENTENCE = 4
"""From this many words on, an entry of the first line is not a name, if all are that long."""


@dataclass(frozen=True)
class Content:
    """The rows of one split.

    :ivar paths: its files; :ivar table: all columns, each as text, "" for missing values.
    :ivar numbers: the number of each row in its file, as an editor shows it, int64 (rows,).
    :ivar files: the number of each row's file, int64 (rows,).
    :ivar format: the format in which the pipeline reads it; None if it must be rewritten.
    :ivar columns: the column names, for a file without a header line.
    :ivar class_names: by column, the names of 0, 1, 2, … in its metadata.
    :ivar others: fields that cannot be columns here, with their types: lists, times, images.
    :ivar lists: columns whose values are lists of names or numbers, as JSON: a row's labels.
    """

    paths: list[Path]
    table: pa.Table
    numbers: np.ndarray
    files: np.ndarray
    format: str | None
    columns: list[str] | None = None
    class_names: dict[str, list[str]] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    lists: frozenset[str] = frozenset()

    @property
    def is_nameless(self) -> bool:
        """Whether neither the file nor the user named the columns."""
        return self.columns is not None and self.columns == numbered(len(self.columns))

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self.table.column_names

    def values(self, column: str) -> list[str]:
        """Return a column's values, stripped."""
        return [value.strip() for value in self.table[column].to_pylist()]

    def place(self, row: int) -> tuple[Path, int]:
        """Return the file of a row of the table, and the row's number as an editor shows it."""
        return self.paths[self.files[row]], int(self.numbers[row])


def read_content(paths: Sequence[Path], options: ReadOptions = ReadOptions()) -> Content:  # noqa: B008
    """Read a split's files, one after the other."""
    return joined([_read(path, options) for path in paths])


def joined(contents: Sequence[Content]) -> Content:
    """Return the rows of several files, with the columns that all of them have."""
    if len(contents) == 1:
        return contents[0]
    first, *rest = contents
    names = [name for name in first.names if all(name in content.names for content in rest)]
    return Content(
        [path for content in contents for path in content.paths],
        pa.concat_tables([content.table.select(names) for content in contents]),
        np.concatenate([content.numbers for content in contents]),
        np.repeat(np.arange(len(contents)), [len(content.numbers) for content in contents]),
        None,
        first.columns,
        first.class_names,
        first.others,
        first.lists,
    )


def numbered(columns: int) -> list[str]:
    """Return names for columns that have none."""
    return [f"column_{number}" for number in range(1, columns + 1)]


def _read(path: Path, options: ReadOptions) -> Content:
    with open_input(path, options) as source:
        if isinstance(source, JsonFile):
            return _json(path, source)
        if isinstance(source, ArrowFile):
            return _arrow(path, source)
        if not isinstance(source, DelimitedFile):
            return _content(path, source.format, source.batches(source.columns))
        header = source.header
    return _delimited(path, header, options)


def _json(path: Path, source: JsonFile) -> Content:
    """Return the keys with plain values in all rows, and nested ones."""
    rows = [*source.rows()]
    names: list[str] = []
    others: dict[str, str] = {}
    lists: list[str] = []
    for key in source.columns:
        cells = [row.get(key) for _, row in rows]
        inner = [*plain_columns(key, cells)]
        if not inner and are_lists_of_names(cells):
            lists.append(key)
        elif not inner:
            others[key] = "list or object"
        names += inner
    names = _some(path, names, others | dict.fromkeys(lists, "list or object")) + lists
    numbers = [number for number, _ in rows]
    values = {name: [value_at(row, name) for _, row in rows] for name in names}
    batches = [RowBatch(str(path), numbers, values)] if rows else []
    return replace(_content(path, source.format, batches, lists), others=others)


def _arrow(path: Path, source: ArrowFile) -> Content:
    """Return the columns of plain values, and those nested in others."""
    names: list[str] = []
    others: dict[str, str] = {}
    lists: list[str] = []
    for field_ in source.table.schema:
        inner = [*_inside(source.table, field_)]
        if not inner and _is_list_of_names(field_.type):
            lists.append(field_.name)
        elif not inner:
            others[field_.name] = str(field_.type)
        names += inner
    names = _some(path, names, others | dict.fromkeys(lists, "list")) + lists
    content = _content(path, source.format, source.batches(names), lists)
    return replace(content, class_names=source.table.class_names(), others=others)


def _inside(table: ArrowTable, column: pa.Field) -> Iterator[str]:
    """Yield the paths of plain values in a column."""
    is_list = kinds.is_list(column.type) or kinds.is_large_list(column.type)
    if is_plain_type(column.type):
        if not is_bytes_type(column.type) or all(map(_is_utf8, table.values(column.name))):
            yield column.name
        return
    is_struct = kinds.is_struct(column.type)
    if is_struct or (is_list and all(map(_has_single_values, table.values(column.name)))):
        parts = table.values(column.name)
        yield from plain_columns(column.name, [value for part in parts for value in part.to_pylist()])


def _is_list_of_names(type_: pa.DataType) -> bool:
    """Whether a column has lists of texts or whole numbers, of any length."""
    if not (kinds.is_list(type_) or kinds.is_large_list(type_)):
        return False
    inner = type_.value_type
    return kinds.is_string(inner) or kinds.is_large_string(inner) or kinds.is_integer(inner)


def _is_utf8(values: pa.Array) -> bool:
    try:
        pc.cast(values, pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _has_single_values(lists: pa.Array) -> bool:
    """Whether lists have at most one value each, which can be told without reading them."""
    return (pc.max(pc.list_value_length(lists)).as_py() or 0) <= 1


def _some(path: Path, names: Sequence[str], others: Mapping[str, str]) -> list[str]:
    """Return the columns, each once."""
    if not names and others:
        raise PotstillError(
            f"{path}: no columns of plain values, only {with_types(others)}. Write texts and "
            "labels, one of each per row."
        )
    return [*dict.fromkeys(names)]


def _delimited(path: Path, header: list[str], options: ReadOptions) -> Content:
    """Read a delimited file, having decided whether its first row is a header line."""
    columns = options.columns
    renamed = columns is None or len(columns) != len(header)
    counts = counts_up(header)
    is_named = counts or not (any(map(_is_number, header)) or _is_sentences(header))
    if renamed and is_named:
        # In a data set without header lines, some files may have one, such as CoLA's test file.
        names = [name for name in header if name.strip()]
        check_once(str(path), names)
        content = _reread(path, names, replace(options, columns=None), None)
        again = _header_rows(content)
        if counts or not _repeats_header(content.table, len(again)):
            if again:
                raise PotstillError(
                    f"{path}: row {', '.join(map(str, again[:_SHOWN]))} repeats the header line. "
                    "Remove it, so that only the first row has the names of the columns."
                )
            return content
    names = [*(columns or numbered(len(header)))]
    if len(names) != len(header):
        raise PotstillError(f"{path}: {len(header)} columns, and --columns names {len(names)}. Name them all.")
    return _reread(path, names, replace(options, columns=names), names)


def _reread(path: Path, names: list[str], options: ReadOptions, columns: list[str] | None) -> Content:
    with open_input(path, options) as source:
        content = _content(path, source.format, source.batches(names))
        # The pipeline completes the rows of a folder of GLUE alone.
        is_short = isinstance(source, DelimitedFile) and source.short_rows > 0
    return replace(content, columns=columns, format=None if is_short else content.format)


def _content(path: Path, format: str, batches: Iterable[RowBatch], lists: Sequence[str] = ()) -> Content:
    numbers: list[np.ndarray] = []
    parts: list[pa.Table] = []
    for batch in batches:
        numbers.append(np.asarray(batch.numbers, np.int64))
        texts = {n: batch.lists(n) if n in lists else batch.texts(n) for n in batch.columns}
        parts.append(pa.table({n: pa.array(t, pa.large_string()) for n, t in texts.items()}))
    if not parts:
        raise no_rows(str(path))
    rows = np.concatenate(numbers)
    files = np.zeros(len(rows), np.int64)
    return Content([path], pa.concat_tables(parts), rows, files, format, lists=frozenset(lists))


def counts_up(header: Sequence[str]) -> bool:
    """Whether a first line counts the columns, as pandas names those of a table without names.

    A column of row numbers, which has no name, may come first.
    """
    names = [name.strip() for name in header]
    names = names[1:] if names and names[0] in ("", "Unnamed: 0") else names
    counted = ([str(number + first) for number in range(len(names))] for first in (0, 1))
    return len(names) > 1 and names in counted


def _is_sentences(header: Sequence[str]) -> bool:
    """Whether a first line has only texts; survey questions come with a time or a name."""
    return bool(header) and all(len(name.split()) >= _SENTENCE for name in header)


def _header_rows(content: Content) -> list[int]:
    """Return the numbers of the rows that equal the header line, as where files were joined."""
    names = tuple(content.names)
    rows = zip(*(column.to_pylist() for column in content.table.columns), strict=True)
    # A single column may have its first text again.
    same = (row == names and len(names) > 1 for row in rows)
    return [int(number) for number, is_same in zip(content.numbers, same, strict=True) if is_same]


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
