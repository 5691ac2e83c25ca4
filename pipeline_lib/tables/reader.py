"""The reader of people's files, for every command and stage.

Formats: a text per line, CSV, TSV, JSON lines or a JSON array, Parquet, Arrow; the first four also
compressed or from standard input.  Only a batch of rows is in memory at a time.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.file_formats import FORMATS, Format, format_of
from pipeline_lib.base.text import has_surrogates
from pipeline_lib.tables.dialects import Dialect, detect
from pipeline_lib.tables.faults import check_once, no_column, no_rows
from pipeline_lib.tables.lines import Lines, open_lines
from pipeline_lib.tables.text_files import delimited_rows, json_rows
from pipeline_lib.tables.values import Paths, as_list_text, as_text

if TYPE_CHECKING:
    from pipeline_lib.tables.arrow_files import ArrowTable

BATCH_ROWS, BATCH_CHARACTERS = 4096, 1 << 24
"""A batch is full at this many rows, or this many characters."""
_METADATA = ("dataset_dict.json", "dataset_info.json", "dataset_infos.json", "state.json")
"""Files of `datasets` that describe others."""
LINES_COLUMN = "text"
"""The only column of a file with a text per line."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file where it does not say so itself; None: the file decides.

    :ivar format: one of :data:`~pipeline_lib.base.file_formats.FORMATS`' values.
    :ivar quoted: whether cells of a delimited file may be quoted; :ivar encoding: a codec's name.
    :ivar columns: the columns of a delimited file without a header line.  A file whose first row
        holds all required names is read as having a header anyway, as CoLA's test file does.
    :ivar short_rows: whether rows may lack cells, which become empty, as in QQP's training file.
    :ivar remedy: how to name another column, for messages.
    :ivar keep_faulty: whether rows that cannot be read stay, without values: see :attr:`RowBatch.faults`.
    """

    format: Format | None = None
    quoted: bool | None = None
    encoding: str | None = None
    columns: Sequence[str] | None = None
    short_rows: bool = False
    remedy: str = ""
    keep_faulty: bool = False


@dataclass(frozen=True)
class RowBatch:
    """Some rows of a file.

    :ivar source: the file; :ivar numbers: the number of each row, as an editor shows it.
    :ivar columns: the values of the columns that were asked for; None where there are none.
    :ivar faults: what is wrong with rows that could not be read, by their position here; None: such rows are errors.
    """

    source: str
    numbers: Sequence[int]
    columns: dict[str, list[Any]]
    faults: dict[int, str] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def where(self, row: int) -> str:
        """Return the file and the number of a row, for messages."""
        return f"{self.source}: row {self.numbers[row]}"

    def lists(self, name: str) -> list[str]:
        """Return a column's values as text, lists among them as JSON."""
        values = enumerate(self.columns[name])
        return [as_list_text(value, name, self.where(row)) for row, value in values]

    def texts(self, name: str) -> list[str]:
        """Return a column's values as text; see :func:`~pipeline_lib.tables.values.as_text`.

        A row whose value is no text joins the faults, if they are kept, and loses the value.
        """
        values = self.columns[name]
        if all(type(value) is str for value in values) and not has_surrogates("".join(values)):
            return values
        return [self._text(row, value, name) for row, value in enumerate(values)]

    def _text(self, row: int, value: Any, name: str) -> str:
        try:
            return as_text(value, name, self.where(row))
        except PotstillError as error:
            if self.faults is None:
                raise
            self.faults.setdefault(row, str(error))
            self.columns[name][row] = None
            return ""


class InputFile(ABC):
    """An open file of rows, to be read once.

    :ivar name: what messages call it; :ivar format: see :class:`ReadOptions`.
    """

    def __init__(self, name: str, format: Format, options: ReadOptions) -> None:
        self.name, self.format, self._options = name, format, options

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The names of its columns; of JSON, the keys in the rows at its start."""

    @abstractmethod
    def batches(self, names: Sequence[str], optional: Sequence[str] = ()) -> Iterator[RowBatch]:
        """Yield its rows.

        :param names: the columns to read, or paths to values nested in them, as ``data.text``.
        :param optional: those of them that may be missing.
        """

    def types(self) -> dict[str, str | None]:
        """Return the types of the columns in all rows; None: of plain values, or for the path of such within."""
        return dict.fromkeys(self.columns)

    def class_names(self) -> dict[str, list[str]]:
        """Return, by column, the names of the classes 0, 1, 2, … that the file gives."""
        return {}

    def _check(self, where: str, names: Sequence[str], optional: Sequence[str], paths: Paths | None = None) -> None:
        """Check that the columns are there, and if paths were followed, that each has led somewhere."""
        for name in names:
            leads_nowhere = paths is not None and name not in paths.found
            if name not in optional and (leads_nowhere or top_of(name, self.columns) is None):
                raise no_column(where, name, self.columns, self._options.remedy)


class TextFile(InputFile):
    """A file of text, whose rows are read one by one."""

    def __init__(self, lines: Lines, format: Format, options: ReadOptions) -> None:
        super().__init__(lines.name, format, options)
        self._lines = lines

    def _batches(
        self, rows: Iterable[tuple[int, list[Any] | PotstillError]], names: Sequence[str]
    ) -> Iterator[RowBatch]:
        """Yield batches of rows; those of a pipe as they are written to it."""
        numbers: list[int] = []
        cells: list[list[Any] | PotstillError] = []
        full = BATCH_CHARACTERS
        for number, row in rows:
            numbers.append(number)
            cells.append(row)
            is_full = len(numbers) == BATCH_ROWS or self._lines.characters > full
            if is_full or self._lines.waiting:
                yield self._batch(numbers, cells, names)
                numbers, cells, full = [], [], self._lines.characters + BATCH_CHARACTERS
        if numbers:
            yield self._batch(numbers, cells, names)

    def _batch(self, numbers: list[int], rows: list[list[Any] | PotstillError], names: Sequence[str]) -> RowBatch:
        none = [None] * len(names)
        cells = [none if isinstance(row, PotstillError) else row for row in rows]
        columns = dict(zip(names, map(list, zip(*cells, strict=True)), strict=True))
        faults = {n: str(row) for n, row in enumerate(rows) if isinstance(row, PotstillError)}
        return RowBatch(self.name, numbers, columns, faults if self._options.keep_faulty else None)


class LinesFile(TextFile):
    """A text per line."""

    @property
    def columns(self) -> list[str]:
        """Its only column."""
        return [LINES_COLUMN]

    def batches(self, names: Sequence[str], optional: Sequence[str] = ()) -> Iterator[RowBatch]:
        """Yield the lines; a blank one is a row without a text."""
        self._check(self.name, names, optional)
        rows = ((n, self._lines.fault_of(line, n) or [line.rstrip("\r\n")]) for n, line in enumerate(self._lines, 1))
        return self._batches(rows, names)


class DelimitedFile(TextFile):
    """CSV or TSV.

    A blank line is only a row if there is just one column; rows without a value at the end of a
    file, which spreadsheets write, are none.

    :ivar header: its first row; :ivar short_rows: the number of rows that were completed so far.
    """

    def __init__(self, lines: Lines, format: Format, dialect: Dialect, options: ReadOptions) -> None:
        super().__init__(lines, format, options)
        self.dialect = dialect
        self._rows = delimited_rows(lines, dialect, options.keep_faulty)
        self._first = next(((number, cells) for number, cells in self._rows if cells), None)
        if self._first is not None and isinstance(self._first[1], PotstillError):
            raise self._first[1]
        self.header = [name.strip() for name in self._first[1]] if self._first else []
        self.short_rows = 0
        self._may_be_short = options.short_rows and format == "tsv" and not dialect.quoted

    @property
    def columns(self) -> list[str]:
        """The names of its columns: those of the options, or its first row."""
        return [*(self._options.columns or self.header)]

    def name_columns(self, names: Sequence[str]) -> None:
        """Name the columns, so that the first row is one of values."""
        self._options = replace(self._options, columns=names)

    def batches(self, names: Sequence[str], optional: Sequence[str] = ()) -> Iterator[RowBatch]:
        """Yield its rows; see :meth:`InputFile.batches`."""
        if self._first is None:
            raise no_rows(self.name)
        required = {name for name in names if name not in optional}
        has_header = self._options.columns is None or required <= {*self.header}
        columns = self.header if has_header else self.columns
        check_once(self.name, [name for name in columns if name in names])
        for name in names:
            if name not in optional and name not in columns:
                raise no_column(self.name, name, columns, self._options.remedy)
        indices = [columns.index(name) if name in columns else None for name in names]
        return self._batches(self._selected(len(columns), has_header, indices), names)

    def _selected(
        self, width: int, has_header: bool, indices: Sequence[int | None]
    ) -> Iterator[tuple[int, list[str | None] | PotstillError]]:
        """Yield the cells with these indices of all rows, which have to be of equal width."""
        empty: list[tuple[int, list[str | None]]] = []
        first = [] if has_header or self._first is None else [self._first]
        for number, cells in chain(first, self._rows):
            if not cells and width > 1:
                continue
            if not isinstance(cells, PotstillError):
                cells = self._lines.fault_of("".join(cells), number) or cells
            if isinstance(cells, PotstillError):
                yield number, cells
                continue
            if len(cells) < width and (self._may_be_short or not cells):
                self.short_rows += 1
                cells = cells + [""] * (width - len(cells))
            if len(cells) != width:
                fault = PotstillError(
                    f"{self.name}: row {number} has {len(cells)} columns, not {width}. Columns are separated by one "
                    f"{self.dialect.separator_name}; correct the row."
                )
                if not self._options.keep_faulty:
                    raise fault
                yield number, fault
                continue
            selected = [None if index is None else cells[index] for index in indices]
            if not any(cells):
                empty.append((number, selected))
                continue
            if empty:
                yield from empty
                empty.clear()
            yield number, selected


class JsonFile(TextFile):
    """JSON lines, or an array of objects; a key that a row lacks is null there."""

    def __init__(self, lines: Lines, options: ReadOptions) -> None:
        super().__init__(lines, "jsonl", options)
        self._seen: dict[str, None] = {}
        self._rows: list[tuple[int, dict[str, Any]]] = []

    @property
    def columns(self) -> list[str]:
        """The keys that rows have had so far."""
        return [*self._seen]

    @property
    def is_one_object(self) -> bool:
        """Whether there is one object alone that holds all rows, once :meth:`types` has read it."""
        if len(self._rows) != 1:
            return False
        inner = [v.values() if isinstance(v, dict) else v for v in self._rows[0][1].values()]
        inside = [value for value in inner if isinstance(value, Collection) and not isinstance(value, str)]
        holds_rows = any(isinstance(entry, list | dict) for value in inside for entry in value)
        return holds_rows or (len(inside) == len(inner) and all(len(value) > 1 for value in inside))

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield its objects with their numbers."""
        for number, row in self._objects():
            if isinstance(row, PotstillError):
                raise row
            yield number, row

    def types(self) -> dict[str, str | None]:
        """Return the types of the columns; see :meth:`InputFile.types`.  All rows are held from now on."""
        from pipeline_lib.tables.values import types_within

        self._rows = [*self.rows()]
        types: dict[str, str | None] = {}
        for key in self.columns:
            types |= types_within(key, [row.get(key) for _, row in self._rows])
        return types

    def _objects(self) -> Iterator[tuple[int, dict[str, Any] | PotstillError]]:
        for number, row in json_rows(self._lines, self._options.keep_faulty):
            if not isinstance(row, PotstillError):
                self._seen |= dict.fromkeys(row)
            yield number, row

    def batches(self, names: Sequence[str], optional: Sequence[str] = ()) -> Iterator[RowBatch]:
        """Yield its rows; see :meth:`InputFile.batches`."""
        paths = Paths()
        rows = (
            (number, row if isinstance(row, PotstillError) else [paths.value_at(row, n) for n in names])
            for number, row in self._rows or self._objects()
        )
        is_checked = False
        for batch in self._batches(rows, names):
            # A batch of which no row is JSON says nothing of the keys.
            if not is_checked and len(batch.faults or ()) < len(batch):
                self._check(batch.where(0), names, optional, paths)
                is_checked = True
            yield batch


class ArrowFile(InputFile):
    """Parquet or Arrow."""

    def __init__(self, table: "ArrowTable", format: Format, options: ReadOptions) -> None:
        super().__init__(str(table.path), format, options)
        self.table = table

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return self.table.schema.names

    def types(self) -> dict[str, str | None]:
        """Return the types of the columns; see :meth:`InputFile.types`."""
        return self.table.types()

    def class_names(self) -> dict[str, list[str]]:
        """Return the class names that ``datasets`` wrote; see :meth:`InputFile.class_names`."""
        return self.table.class_names()

    def batches(self, names: Sequence[str], optional: Sequence[str] = ()) -> Iterator[RowBatch]:
        """Yield its rows; see :meth:`InputFile.batches`."""
        self._check(self.name, names, optional)
        tops = {name: top_of(name, self.columns) for name in names}
        first, paths = 1, {name: Paths() for name in names}
        for batch in self.table.batches([*dict.fromkeys(top for top in tops.values() if top)]):
            numbers = range(first, first + batch.num_rows)
            columns: dict[str, list[Any]] = {}
            for name, top in tops.items():
                values = batch[top].to_pylist() if top else [None] * len(numbers)
                inside = top and name[len(top) + 1 :]
                columns[name] = [paths[name].value_at(v, inside) for v in values] if inside else values
                if inside and first == 1 and name not in optional and not paths[name].found:
                    raise no_column(self.name, name, [*self.types()], self._options.remedy)
            yield RowBatch(self.name, numbers, columns, {} if self._options.keep_faulty else None)
            first += batch.num_rows


def top_of(path: str, names: Sequence[str]) -> str | None:
    """Return the column in which a path begins: itself, or the ``data`` of ``data.text``."""
    if path in names:
        return path
    return next((name for name in names if path.startswith(f"{name}.")), None)


def input_format(path: Path | None, options: ReadOptions) -> Format:
    """Return the format in which a file, or standard input, is read: lines, unless known."""
    return options.format or (format_of(path) if path else None) or "lines"


@contextmanager
def open_input(path: Path | None, options: ReadOptions = ReadOptions()) -> Iterator[InputFile]:
    """Open a file, or standard input.

    What the file decides otherwise than its suffix says, and an encoding that was guessed, are
    logged as warnings, which Python prints.

    :param path: None: standard input, which has lines unless the options say otherwise.
    """
    format = input_format(path, options)
    if path is not None and (not path.exists() or path.is_dir()):
        raise PotstillError(f"{path}: not found. Put the file there, or correct the path.")
    with ExitStack() as stack:
        if format in ("parquet", "arrow"):
            from pipeline_lib.tables.arrow_files import open_arrow

            if path is None or not path.is_file():
                name = path or "standard input"
                raise PotstillError(f"{name}: {format.capitalize()} is read from its end. Give it as a file.")
            table = stack.enter_context(open_arrow(path, format))
            yield ArrowFile(table, format, options)
            return
        lines = stack.enter_context(open_lines(path, options.encoding, options.keep_faulty))
        if lines.guessed:
            note_once(
                f"{lines.name}: not UTF-8, so read as {lines.encoding}, which was guessed. If that "
                "is wrong, name another."
            )
        if format == "lines":
            yield LinesFile(lines, format, options)
        elif format == "jsonl":
            yield JsonFile(lines, options)
        else:
            sample, is_whole = lines.sample, lines.is_whole
            dialect = detect(sample, is_whole, format, options.quoted)
            if format == "tsv" and dialect.quoted and options.quoted is None:
                note_once(f"{lines.name}: its cells are quoted, as in CSV.")
            yield DelimitedFile(lines, format, dialect, options)


@cache
def note_once(message: str) -> None:
    """Log a warning, unless it was logged before."""
    _log.warning(message)


def read_batches(
    path: Path | None, names: Sequence[str], optional: Sequence[str] = (), options: ReadOptions = ReadOptions()
) -> Iterator[RowBatch]:
    """Yield the rows of a file; see :func:`open_input` and :meth:`InputFile.batches`.

    :param path: a file, or a folder whose files are read in the order of their names.
    """
    for file in files_in(path) if path is not None and path.is_dir() else [path]:
        with open_input(file, options) as source:
            yield from source.batches(names, optional)


def files_in(folder: Path) -> list[Path]:
    """Return the files of a known format in a folder, such as one of the hub's or of `datasets`."""
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not is_hidden(path.relative_to(folder)) and format_of(path)
    ]
    if not files:
        raise PotstillError(f"{folder}: no data files in this folder; known suffixes are {', '.join(FORMATS)}.")
    return files


def is_hidden(path: Path) -> bool:
    """Whether a file, relative to its data set's folder, is not part of the data."""
    return path.name in _METADATA or any(part.startswith((".", "cache-")) for part in path.parts)
