"""The texts that a student answers, from a file or standard input, a batch at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import has_surrogates
from pipeline_lib.tables.reader import (
    LINES_COLUMN,
    ArrowFile,
    ReadOptions,
    RowBatch,
    input_format,
    open_input,
    read_batches,
)
from pipeline_lib.tables.writer import cell_text

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline_lib.base.text import Text

SECOND_COLUMN = "text_pair"
"""The default name of the second sentence's column."""
REMEDY = "Name one of them with --text (for pairs also --text2) or --keep."


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
    :ivar numbers: the rows' numbers in the file.
    :ivar faults: what is wrong with rows that could not be read, by their position here.
    """

    columns: dict[str, list[Any]]
    texts: "list[Text | None]"
    numbers: Sequence[int]
    faults: dict[int, str] = field(default_factory=dict)


def read_texts(file: Path | None, columns: Columns, options: ReadOptions) -> Iterator[TextBatch]:
    """Yield the rows of a file; only these columns are read.

    A row that cannot be read, such as a line of JSON that is truncated, stays without a text.

    :param file: None: standard input.
    """
    if is_lines(file, options):
        options = replace(options, format="lines", keep_faulty=True)
        for batch in read_batches(file, [LINES_COLUMN], options=options):
            lines = [line or "" for line in batch.columns[LINES_COLUMN]]
            yield of_lines(lines, batch.numbers, columns, batch.faults)
        return
    options = replace(options, remedy=REMEDY, keep_faulty=True)
    for batch in read_batches(file, columns.all, options=options):
        yield _of_table(batch, columns)


def is_lines(file: Path | None, options: ReadOptions) -> bool:
    """Whether a source has a sentence per line, and no columns."""
    return not (file and file.is_dir()) and input_format(file, options) == "lines"


def of_lines(
    lines: list[str], numbers: Sequence[int], columns: Columns, faults: dict[int, str] | None = None
) -> TextBatch:
    """Return a batch of lines; for pairs, a tab separates the two sentences.

    A blank line has no sentence.

    :param faults: see :class:`TextBatch`; those of pairs are added.  None: they are errors.
    """
    all_faults = {} if faults is None else faults
    if columns.second is None:
        texts = [line if line.strip() else None for line in lines]
        return TextBatch({columns.text: lines}, [*texts], numbers, all_faults)
    pairs: list[tuple[str, str] | None] = []
    for row, line in enumerate(lines):
        try:
            pairs.append(_pair(line) if line.strip() else None)
        except PotstillError as error:
            if faults is None:
                raise
            all_faults[row] = f"row {numbers[row]}: {error}"
            pairs.append(None)
    first, second = zip(*(pair or ("", "") for pair in pairs), strict=True)
    return TextBatch({columns.text: [*first], columns.second: [*second]}, [*pairs], numbers, all_faults)


def as_examples(lines: Iterable[str], is_pair: bool) -> "Iterator[Text]":
    """Yield lines as a student reads them: as they are, or split at the tab into pairs."""
    return map(_pair, lines) if is_pair else iter(lines)


def _pair(line: str) -> tuple[str, str]:
    first, tab, second = line.partition("\t")
    if not tab or not first.strip() or not second.strip():
        raise PotstillError(
            f"{line!r:.80}: not a pair. This student compares two sentences: write both on one "
            "line, separated by a tab."
        )
    return first, second


def column_types(file: Path | None, columns: Columns, options: ReadOptions) -> "dict[str, pa.DataType]":
    """Return the Arrow types of the columns that are read from a Parquet or Arrow file."""
    if file is None or file.is_dir() or input_format(file, options) not in ("parquet", "arrow"):
        return {}
    with open_input(file, options) as source:
        assert isinstance(source, ArrowFile)
        schema = source.table.schema
        return {name: schema.field(name).type for name in columns.all if name in schema.names}


def _of_table(batch: RowBatch, columns: Columns) -> TextBatch:
    sides = [[text if text.strip() else None for text in batch.texts(name)] for name in columns.texts]
    faults = batch.faults or {}
    for name in columns.keep:
        for row, value in enumerate(batch.columns[name]):
            # Numbers and truth values are always well-formed.
            if isinstance(value, str | list | dict) and has_surrogates(cell_text(value) or ""):
                where = f"{batch.where(row)}, column {name!r}"
                faults.setdefault(row, f"{where} holds half a surrogate pair. Write it as UTF-8.")
                batch.columns[name][row] = None
    sides = [[None if row in faults else text for row, text in enumerate(side)] for side in sides]
    if len(sides) == 1:
        return TextBatch(batch.columns, [*sides[0]], batch.numbers, faults)
    pairs = [None if first is None or second is None else (first, second) for first, second in zip(*sides, strict=True)]
    return TextBatch(batch.columns, [*pairs], batch.numbers, faults)
