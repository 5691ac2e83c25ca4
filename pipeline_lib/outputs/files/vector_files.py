"""Reading sentence vectors from files.

A row has a ``text`` and its ``embedding``, or an ``error``; a batch's line has the content key instead of the text.
"""

import base64
import binascii
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.file_formats import Format, format_of
from pipeline_lib.outputs.files.answer_rows import ANSWERS
from pipeline_lib.outputs.files.batch_lines import is_line, read_line, value_in
from pipeline_lib.outputs.files.gathering import Values
from pipeline_lib.outputs.files.keyed_table import KeyedTable, content_keys
from pipeline_lib.outputs.files.teacher_files import (
    Described,
    Given,
    GivenRows,
    check_columns,
    check_rows,
    check_text,
    described,
    parts_of,
    read_rows,
)
from pipeline_lib.params import SentenceVectorFiles
from pipeline_lib.shards.vectors import unit
from pipeline_lib.tables.reader import ArrowFile, JsonFile, ReadOptions, open_input

EMBEDDING = "embedding"
COLUMNS = ("text", EMBEDDING, "error")
SAME = 0.999
"""Two vectors of a text with at least this cosine are the same: APIs' rounding varies."""


def holds_vectors(path: Path, format: Format | None) -> bool:
    """Whether a file has sentence vectors, judging by the first row with an answer."""
    with open_input(path, ReadOptions(format=format)) as source:
        if not isinstance(source, JsonFile):
            return EMBEDDING in source.columns
        for _, row in source.rows():
            if EMBEDDING in row or value_in(row, "vector") is not None:
                return True
            if {*ANSWERS} & row.keys() or value_in(row, "reply") is not None:
                return False
    return False


class Vectors(Values):
    """Sentence vectors, all of one ``width``, once the first was read."""

    name = "vectors"
    few = False
    another = f"vector (their cosine is below {SAME})"
    again = "have the texts embedded again, and put that file here."

    def __init__(self, settings: SentenceVectorFiles) -> None:
        self.settings, self.width = settings, 0

    @classmethod
    def by_default(cls) -> "Vectors":
        """Return how files are read that params.yaml does not name."""
        values = {"files": ["-"], "format": None, "mask": "[MASK]", "provenance": {}}
        return cls(SentenceVectorFiles.model_validate(values))

    def read(self, path: Path) -> tuple[Described, Iterator[GivenRows]]:
        """Read a file; see :meth:`Values.read`.  Arrow's vectors are never Python objects."""
        return described(path, self.settings.format), self._parts(path)

    def _parts(self, path: Path) -> Iterator[GivenRows]:
        format = self.settings.format or format_of(path)
        if format in ("parquet", "arrow"):
            batches = self._of_table(path, format)
        else:
            rows = read_rows(path, format, COLUMNS.__contains__, _of_row, ("text",), (EMBEDDING,))
            batches = parts_of(path, rows, self._vector)
        for batch in batches:
            if len(batch.keys):
                zero = ~batch.values.any(axis=1)
                check_rows(path, batch.numbers, zero, f"`{EMBEDDING}`: all values are 0")
            yield batch

    def _vector(self, row: Given, where: str) -> np.ndarray:
        vector = _parsed(row.value, where)
        self._check_width(len(vector), where)
        return vector

    def _check_width(self, length: int, where: str) -> None:
        if not length:
            raise PotstillError(f"{where}: no `{EMBEDDING}`. In a row without one, give the reason in `error`.")
        self.width = self.width or length
        if length != self.width:
            raise PotstillError(
                f"{where}: `{EMBEDDING}` has {length:,} values, but those before it have "
                f"{self.width:,}. Use vectors of one model and one length."
            )

    def _of_table(self, path: Path, format: Format) -> Iterator[GivenRows]:
        with open_input(path, ReadOptions(format=format)) as source:
            assert isinstance(source, ArrowFile)
            check_columns(path, source.columns, ("text",), (EMBEDDING,))
            first = 1
            for batch in source.table.batches([n for n in COLUMNS if n in source.columns]):
                yield self._of_batch(path, batch, np.arange(first, first + batch.num_rows))
                first += batch.num_rows

    def _of_batch(self, path: Path, batch: pa.RecordBatch, numbers: np.ndarray) -> GivenRows:
        errors = batch["error"].to_pylist() if "error" in batch.schema.names else []
        failed = np.array([bool(error) for error in errors] or [False] * len(numbers), bool)
        batch, numbers = batch.filter(pa.array(~failed)), numbers[~failed]
        texts = batch["text"].to_pylist()
        for number, text in zip(numbers, texts, strict=True):
            check_text(text, f"{path}: row {number}")
        vectors = self._matrix(path, batch[EMBEDDING], numbers)
        weights, reasons = np.full(len(numbers), np.nan), Counter(map(str, filter(None, errors)))
        return GivenRows(numbers, content_keys([texts]), vectors, weights, len(failed), reasons)

    def _matrix(self, path: Path, column: pa.Array, numbers: np.ndarray) -> np.ndarray:
        if not len(column):
            return np.zeros((0, 0), np.float32)
        number = getattr(column.type, "value_type", pa.null())
        is_number = pa.types.is_floating(number) or pa.types.is_integer(number)
        if not is_number or not pa.types.is_nested(column.type):
            raise PotstillError(
                f"{path}: the column {EMBEDDING!r} is {column.type}, not a list of numbers. Write lists of float32."
            )
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        odd = int((lengths != (self.width or lengths[0])).argmax())
        self._check_width(int(lengths[odd]), f"{path}: row {numbers[odd]}")
        with np.errstate(over="ignore"):
            values = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
        return values.reshape(len(column), -1)

    def same(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        """Return which vectors have the same direction, bool (rows,)."""
        return (unit(one) * unit(two)).sum(axis=1) >= SAME

    def facts(self, table: KeyedTable) -> list[str]:
        """Return the vectors' width and length."""
        lengths = np.linalg.norm(table[:10_000], axis=1)
        return [f"{table.width:,} values each, of length {lengths.min():.3f} to {lengths.max():.3f}"]


def _of_row(row: Mapping[str, Any], where: str) -> Given:
    if EMBEDDING not in row and is_line(row):
        answer, vector = read_line(row, "vector", where)
        return answer if answer.error is not None else replace(answer, kind=EMBEDDING, value=vector)
    if row.get("error"):
        return Given(error=str(row["error"]))
    check_text(row.get("text"), where)
    return Given((row["text"],), None, EMBEDDING, row.get(EMBEDDING))


def _parsed(value: Any, where: str) -> np.ndarray:
    """Return a row's vector, float32 (width,), from a list, JSON, or an API's base64."""
    try:
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = json.loads(value)
        if isinstance(value, str):
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4")
        with np.errstate(over="ignore"):
            vector = np.array([] if value is None else value, np.float32)
        if vector.ndim == 1:
            return vector
        fault = f"{vector.ndim} dimensions"
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        fault = str(error)
    raise PotstillError(
        f"{where}: {value!r:.40} is not a list of numbers ({fault}). Write `{EMBEDDING}` as [0.1, -0.2, …]."
    )
