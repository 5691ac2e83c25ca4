"""Rows of external teachers' files: a text, or its content key, and what a teacher gives it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice, starmap
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.content_keys import content_keys
from pipeline_lib.outputs.files.teacher_rows import BATCHES, options_of
from pipeline_lib.tables.reader import InputFile, JsonFile, RowBatch, open_input

LINES = 2000
"""Rows to read at a time: their numbers are Python objects until they become an array."""
TEXTS = ("text", "text_pair", "label", "error")
"""The columns of texts."""
Parse = Callable[[dict[str, Any], str], "Given"]
"""Returns what a row, or a line of a batch's output, gives; the second argument names it."""


@dataclass(frozen=True)
class Given:
    """What one row of a file gives to a text.

    :ivar key: the content key, if the row has that instead of the texts.
    :ivar kind: the column of the answer or vector; None: there is an ``error`` instead.
    """

    texts: tuple[str, ...] | None = None
    key: int | None = None
    kind: str | None = None
    value: Any = None
    weight: float | None = None
    coverage: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class GivenRows:
    """Some rows of a file, of which not all have a value.

    :ivar numbers: of those with one, the line numbers in an editor, int64 (rows,); :ivar keys: their content keys,
        uint64 (rows,); :ivar values: float32 (rows, width); :ivar weights: float64 (rows,), NaN where there is none.
    :ivar rows: how many rows there are; :ivar errors: how often each reason for no value was given.
    """

    numbers: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    rows: int
    errors: Mapping[str, int]


def read_rows(
    path: Path, format: str, is_wanted: Callable[[str], bool], values: Sequence[str], parse: Parse
) -> Iterator[tuple[int, Given]]:
    """Yield a file's rows with their numbers.

    :param is_wanted: whether a column is read; :param values: the columns, one of which is needed.
    """
    with open_input(path, options_of(format)) as source:
        if not isinstance(source, JsonFile):
            check_columns(path, source.columns, values)
        for number, row in _rows_in(source, is_wanted):
            where = f"{path}: row {number}"
            if format in BATCHES:
                with batch_line(where):
                    line = parse(row, where)
                yield number, line
            elif "metadata" not in row or "text" in row:
                yield number, parse(row, where)


def _rows_in(source: InputFile, is_wanted: Callable[[str], bool]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the numbers of an open file's rows, and their values that are not missing."""
    if isinstance(source, JsonFile):
        yield from source.rows()
        return
    names = [name for name in source.columns if is_wanted(name)]
    for batch in source.batches(names):
        columns = [_column(batch, name) for name in names]
        for number, *values in zip(batch.numbers, *columns, strict=True):
            row = dict(zip(names, values, strict=True))
            yield number, {n: v for n, v in row.items() if v is not None and v != ""}


def _column(batch: RowBatch, name: str) -> list[Any]:
    """Return a column: texts as text, and a label's lists of several names as JSON."""
    values = batch.columns[name]
    if name == "label" and any(isinstance(value, list) and len(value) != 1 for value in values):
        return batch.lists(name)
    return batch.texts(name) if name in TEXTS else values


def check_columns(path: Path, names: Sequence[str], values: Sequence[str]) -> None:
    """Check that a file has a column of texts, and one of values."""
    for wanted in (("text",), values):
        if not any(name.partition(".")[0] in wanted for name in names):
            raise PotstillError(
                f"{path}: no column {' or '.join(map(repr, wanted))}; there are "
                f"{', '.join(map(repr, names)) or 'none'}. docs/teacher-files.md has the columns; "
                "`distill teacher check` tries a file."
            )


def check_text(text: Any, where: str) -> None:
    """Check that a row has a text."""
    if not isinstance(text, str) or not text.strip():
        raise PotstillError(f"{where}: `text` is missing or not text. Fill it in.")


def check_rows(path: Path, numbers: np.ndarray, broken: np.ndarray, fault: str) -> None:
    """Check that no row is broken.

    :param numbers: of the rows, int (rows,); :param broken: a mask, bool (rows,).
    """
    if broken.any():
        raise PotstillError(
            f"{path}: row {numbers[broken.argmax()]}: {fault}. Correct it, or give the reason in `error`."
        )


def parts_of(
    path: Path, rows: Iterator[tuple[int, Given]], value_of: Callable[[Given, str], np.ndarray | None]
) -> Iterator[GivenRows]:
    """Yield rows as arrays, a few thousand at a time.

    :param value_of: returns a row's value, float32 (width,), or None if it covers too little.
    """

    def converted(number: int, row: Given) -> tuple[int, Given]:
        if row.error is not None:
            return number, row
        return number, replace(row, value=value_of(row, f"{path}: row {number}"))

    lines = starmap(converted, rows)
    while some := [*islice(lines, LINES)]:
        known = [(number, row) for number, row in some if row.value is not None]
        yield GivenRows(
            np.array([number for number, _ in known], np.int64),
            _keys([row for _, row in known]),
            np.array([row.value for _, row in known], np.float32),
            np.array([row.weight for _, row in known], np.float64),
            len(some),
            Counter(row.error for _, row in some if row.error is not None),
        )


def _keys(rows: Sequence[Given]) -> np.ndarray:
    keys = np.array([row.key or 0 for row in rows], np.uint64)
    written = [number for number, row in enumerate(rows) if row.texts is not None]
    if written:
        sides = zip(*(rows[number].texts for number in written), strict=True)
        keys[written] = content_keys([*sides])
    return keys


@contextmanager
def batch_line(where: str) -> Iterator[None]:
    """Turn whatever a line of another shape raises into one clear error."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, IndexError) as error:
        raise PotstillError(
            f"{where}: not a line of a batch's output ({type(error).__name__}: {error}). Correct it, or take it out."
        ) from error
