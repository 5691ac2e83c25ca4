"""The texts that a student answers, from a file or standard input, a batch at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.tables.reader import (
    LINES_COLUMN,
    ArrowFile,
    ReadOptions,
    RowBatch,
    input_format,
    open_input,
    read_batches,
)

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
    """

    columns: dict[str, list[Any]]
    texts: "list[Text | None]"
    numbers: Sequence[int]


def read_texts(file: Path | None, columns: Columns, options: ReadOptions) -> Iterator[TextBatch]:
    """Yield the rows of a file; only these columns are read.

    :param file: None: standard input.
    :raises DistilleryError: naming the file, the row or column, and the remedy.
    """
    if is_lines(file, options):
        options = replace(options, format="lines")
        for batch in read_batches(file, [LINES_COLUMN], options=options):
            yield of_lines(batch.columns[LINES_COLUMN], batch.numbers, columns)
        return
    for batch in read_batches(file, columns.all, options=replace(options, remedy=REMEDY)):
        yield _of_table(batch, columns)


def is_lines(file: Path | None, options: ReadOptions) -> bool:
    """Whether a source has a sentence per line, and no columns."""
    return not (file and file.is_dir()) and input_format(file, options) == "lines"


def of_lines(lines: list[str], numbers: Sequence[int], columns: Columns) -> TextBatch:
    """Return a batch of lines; for pairs, a tab separates the two sentences.

    A blank line has no sentence.

    :raises DistilleryError: if a line should be a pair and is not.
    """
    if columns.second is None:
        return TextBatch(
            {columns.text: lines}, [line if line.strip() else None for line in lines], numbers
        )
    pairs = [_pair(line) if line.strip() else None for line in lines]
    first, second = zip(*(pair or ("", "") for pair in pairs), strict=True)
    return TextBatch({columns.text: [*first], columns.second: [*second]}, [*pairs], numbers)


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


def column_types(
    file: Path | None, columns: Columns, options: ReadOptions
) -> "dict[str, pa.DataType]":
    """Return the Arrow types of the columns that are read from a Parquet or Arrow file."""
    if file is None or file.is_dir() or input_format(file, options) not in ("parquet", "arrow"):
        return {}
    with open_input(file, options) as source:
        assert isinstance(source, ArrowFile)
        schema = source.table.schema
        return {name: schema.field(name).type for name in columns.all if name in schema.names}


def _of_table(batch: RowBatch, columns: Columns) -> TextBatch:
    sides = [
        [text if text.strip() else None for text in batch.texts(name)] for name in columns.texts
    ]
    if len(sides) == 1:
        return TextBatch(batch.columns, [*sides[0]], batch.numbers)
    pairs = [
        None if first is None or second is None else (first, second)
        for first, second in zip(*sides, strict=True)
    ]
    return TextBatch(batch.columns, [*pairs], batch.numbers)
