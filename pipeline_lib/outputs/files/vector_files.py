"""Reading sentence vectors from files: Parquet, Arrow, CSV, JSON Lines, a batch's output.

A row has a ``text`` and its ``embedding``, or an ``error``; a batch's line has the content key
instead of the text.  docs/teacher-files.md describes the schema.
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
from pipeline_lib.outputs.files.answer_files import ANSWERS
from pipeline_lib.outputs.files.batch_lines import batch_body, batch_response
from pipeline_lib.outputs.files.content_keys import content_keys
from pipeline_lib.outputs.files.gathering import Values
from pipeline_lib.outputs.files.given_rows import (
    Given,
    GivenRows,
    check_columns,
    check_rows,
    check_text,
    parts_of,
    read_rows,
)
from pipeline_lib.outputs.files.keyed_table import KeyedTable
from pipeline_lib.outputs.files.teacher_rows import BATCHES, Described, described, format_of, options_of
from pipeline_lib.params import SentenceVectorFiles
from pipeline_lib.shards.vectors import unit
from pipeline_lib.tables.reader import ArrowFile, JsonFile, open_input

EMBEDDING = "embedding"
COLUMNS = ("text", EMBEDDING, "error")
SAME = 0.999
"""Two vectors of a text with at least this cosine are the same: APIs' rounding varies."""


def holds_vectors(path: Path, format: str | None) -> bool:
    """Whether a file has sentence vectors, judging by the first row with an answer."""
    with open_input(path, options_of(format_of(path, format))) as source:
        if not isinstance(source, JsonFile):
            return EMBEDDING in source.columns
        for _, line in source.rows():
            body = batch_body(line)
            if EMBEDDING in line or {EMBEDDING, "data"} & body.keys():
                return True
            if "outputs" in line or body or {*ANSWERS} & line.keys():
                return False
    return False


class Vectors(Values):
    """Sentence vectors, all of one length.

    :ivar width: their length, as soon as the first was read.
    """

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
        return cls(SentenceVectorFiles.model_validate(values | {"storage": "float32"}))

    def read(self, path: Path) -> tuple[Described, Iterator[GivenRows]]:
        """Read a file; see :meth:`Values.read`.  Arrow's vectors are never Python objects."""
        format = format_of(path, self.settings.format)
        if format == "vllm":
            raise PotstillError(
                f"{path}: these are vLLM's answers, which have no `{EMBEDDING}`. Give the output "
                "of `vllm run-batch` for /v1/embeddings, or lines of text and embedding."
            )
        return described(path, format), self._parts(path, format)

    def _parts(self, path: Path, format: str) -> Iterator[GivenRows]:
        if format in ("parquet", "arrow"):
            parts = self._of_table(path, format)
        else:
            parse = _of_line if format in BATCHES else _of_row
            rows = read_rows(path, format, COLUMNS.__contains__, (EMBEDDING,), parse)
            parts = parts_of(path, rows, self._vector)
        for part in parts:
            if len(part.keys):
                zero = ~part.values.any(axis=1)
                check_rows(path, part.numbers, zero, f"`{EMBEDDING}`: all values are 0")
            yield part

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

    def _of_table(self, path: Path, format: str) -> Iterator[GivenRows]:
        with open_input(path, options_of(format)) as source:
            assert isinstance(source, ArrowFile)
            check_columns(path, source.columns, (EMBEDDING,))
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
        """Return a column of lists as an array, float32 (rows, width)."""
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
    if row.get("error"):
        return Given(error=str(row["error"]))
    check_text(row.get("text"), where)
    return Given((row["text"],), None, EMBEDDING, row.get(EMBEDDING))


def _of_line(line: Mapping[str, Any], where: str) -> Given:
    """Parse a line of an embeddings batch's output."""
    row, body = batch_response(line, where)
    if row.error is not None:
        return row
    data = body.get("data")
    first = data[0] if isinstance(data, list) and data else body
    if not isinstance(first, Mapping) or EMBEDDING not in first:
        raise PotstillError(
            f"{where}: no response.body.data[0].{EMBEDDING}. Give the output of a batch for /v1/embeddings."
        )
    value = first[EMBEDDING]
    # Gemini's has the numbers one level below.
    value = value.get("values") if isinstance(value, Mapping) else value
    return replace(row, kind=EMBEDDING, value=value)


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
