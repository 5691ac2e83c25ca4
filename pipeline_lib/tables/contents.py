"""Whole files in memory, for those who do not know them yet: all columns, each as text."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.kind import NO_VALUE, finite_number
from pipeline_lib.base.text import composed
from pipeline_lib.tables.faults import check_once, no_rows
from pipeline_lib.tables.layouts import LABEL, as_cells, class_files, marked
from pipeline_lib.tables.lines import open_lines
from pipeline_lib.tables.reader import LINES_COLUMN, DelimitedFile, InputFile, JsonFile, ReadOptions, open_input
from pipeline_lib.tables.usual_names import says_label, says_text
from pipeline_lib.tables.values import LISTS, with_types

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
        """Return a column's values, stripped, with composed accents."""
        return [composed(value).strip() for value in self.table[column].to_pylist()]

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
    if path.is_dir():
        return _of_classes(path)
    with open_input(path, options) as source:
        if isinstance(source, DelimitedFile):
            return _delimited(path, source, options.columns)
        types = source.types()
        if isinstance(source, JsonFile) and source.is_one_object:
            raise PotstillError(
                f"{path}: one JSON object, with {', '.join(source.columns[:_SHOWN])}, not one for each text. Write a "
                "list of objects, as pandas' to_json(orient='records') does; of rows below a key, that list alone."
            )
        names = [name for name, type_ in types.items() if type_ is None]
        others = {name: type_ for name, type_ in types.items() if type_ is not None}
        if not names and others:
            raise PotstillError(
                f"{path}: no columns of plain values, only {with_types(others)}. Write texts and "
                "labels, one of each per row."
            )
        lists = [name for name, type_ in others.items() if type_ == LISTS]
        others = {name: type_ for name, type_ in others.items() if type_ != LISTS}
        content = _content(path, source, names + lists, lists)
        if source.format == "lines" and (marks := marked(content.table[LINES_COLUMN].to_pylist())):
            texts, labels, rows = marks
            return _labelled(content.paths, texts, labels, content.numbers[rows], content.files[rows])
        return replace(content, class_names=source.class_names(), others=others)


def _of_classes(folder: Path) -> Content:
    """Read a folder per class, a text per file."""
    files = [(name, file) for name, inner in class_files(folder).items() for file in inner]
    texts = []
    for _, file in files:
        with open_lines(file) as lines:
            texts.append(" ".join(" ".join(lines).split()))
    ones = np.ones(len(files), np.int64)
    return _labelled([file for _, file in files], texts, [[name] for name, _ in files], ones, np.arange(len(files)))


def _labelled(
    paths: list[Path], texts: list[str], labels: list[list[str]], numbers: np.ndarray, files: np.ndarray
) -> Content:
    cells, are_lists = as_cells(labels)
    table = pa.table({LINES_COLUMN: pa.array(texts, pa.large_string()), LABEL: pa.array(cells, pa.large_string())})
    return Content(paths, table, numbers, files, None, lists=frozenset([LABEL] if are_lists else []))


def _content(path: Path, source: InputFile, names: Sequence[str], lists: Sequence[str] = ()) -> Content:
    numbers: list[np.ndarray] = []
    tables: list[pa.Table] = []
    for batch in source.batches(names):
        numbers.append(np.asarray(batch.numbers, np.int64))
        texts = {n: batch.lists(n) if n in lists else batch.texts(n) for n in batch.columns}
        tables.append(pa.table({n: pa.array(t, pa.large_string()) for n, t in texts.items()}))
    if not tables:
        raise no_rows(str(path))
    rows = np.concatenate(numbers)
    files = np.zeros(len(rows), np.int64)
    return Content([path], pa.concat_tables(tables), rows, files, source.format, lists=frozenset(lists))


def _delimited(path: Path, source: DelimitedFile, columns: Sequence[str] | None) -> Content:
    """Read a delimited file, and decide whether its first row is a header line.

    :param columns: the names that the user gave.
    """
    header = source.header
    source.name_columns(numbered(len(header)))
    content = _content(path, source, source.columns)
    # The pipeline completes the rows of a folder of GLUE alone.
    content = replace(content, format=None if source.short_rows else content.format)
    counts = counts_up(header)
    is_named = counts or not (any(map(_is_value, header)) or _is_sentences(header))
    # In a data set without header lines, some files may have one, such as CoLA's test file.
    if is_named and (columns is None or len(columns) != len(header)):
        named = _under_header(content, header)
        again = _header_rows(named)
        if counts or not _repeats_header(named.table, len(again)):
            if again:
                raise PotstillError(
                    f"{path}: row {', '.join(map(str, again[:_SHOWN]))} repeats the header line. "
                    "Remove it, so that only the first row has the names of the columns."
                )
            return named
    names = [*(columns or numbered(len(header)))]
    if len(names) != len(header):
        raise PotstillError(f"{path}: {len(header)} columns, and --columns names {len(names)}. Name them all.")
    if {*names} <= {*header}:
        return replace(_under_header(content, header), columns=names)
    return replace(content, table=content.table.rename_columns(names), columns=names)


def _under_header(content: Content, header: Sequence[str]) -> Content:
    """Return rows of which the first one names the columns; those without a name are left out."""
    named = [number for number, name in enumerate(header) if name.strip()]
    names = [header[number] for number in named]
    check_once(str(content.paths[0]), names)
    if len(content.numbers) == 1:
        raise no_rows(str(content.paths[0]))
    table = content.table.select(named).rename_columns(names).slice(1)
    return replace(content, table=table, numbers=content.numbers[1:], files=content.files[1:])


def counts_up(header: Sequence[str]) -> bool:
    """Whether a first line counts the columns, as pandas names those of a table without names.

    A column of row numbers, which has no name, may come first.
    """
    names = [name.strip() for name in header]
    names = names[1:] if names and names[0] in ("", "Unnamed: 0") else names
    counted = ([str(number + first) for number in range(len(names))] for first in (0, 1))
    return len(names) > 1 and names in counted


def _is_value(name: str) -> bool:
    """Whether an entry of a first line is a number, or stands for a missing one, and so is no name."""
    return finite_number(name) is not None or name.strip().casefold() in NO_VALUE - {""}


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
    """Whether a name in the first line is also a value of its column, so a label, and no other one is usual.

    :param again: the number of rows that equal the first line, which say nothing.
    """
    counts = {name: Counter(table[name].to_pylist()) for name in table.column_names}
    repeated = [name for name, each in counts.items() if each[name] > again and len(each) <= _FEW]
    return bool(repeated) and not any(says_text(name) or says_label(name) for name in {*counts} - {*repeated})
