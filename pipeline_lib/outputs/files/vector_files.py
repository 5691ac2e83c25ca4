"""Reading sentence vectors from files: Parquet, Arrow, CSV, JSON Lines, a batch's output.

A row has a ``text`` and its ``embedding``, or an ``error``; a batch's line has the content key
instead of the text.  docs/teacher-files.md describes the schema.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.outputs.files.answer_files import ANSWERS
from pipeline_lib.outputs.files.batch_output import batch_line, content_key, failure
from pipeline_lib.outputs.files.content_keys import content_keys
from pipeline_lib.outputs.files.teacher_rows import format_of, options_of, rows_in
from pipeline_lib.tables.reader import ArrowFile, InputFile, JsonFile, open_input

EMBEDDING = "embedding"
COLUMNS = ("text", EMBEDDING, "error")
LINES = 2000
"""Lines to read at a time: their numbers are Python objects until they become an array."""


Line = tuple[int, int | None, Any, str | None]
"""A line's number; its content key and its raw vector, or the reason why there is none."""


@dataclass(frozen=True)
class VectorRows:
    """Some rows of a file.

    :ivar numbers: line numbers in an editor, int64 (rows,); :ivar keys: content keys, uint64
        (rows,).
    :ivar vectors: float32 (rows, width).
    :ivar errors: why other rows, which are not among these, have no vector.
    """

    numbers: np.ndarray
    keys: np.ndarray
    vectors: np.ndarray
    errors: list[str]


def holds_vectors(path: Path, format: str | None) -> bool:
    """Whether a file has sentence vectors, judging by the first row with an answer.

    :raises DistilleryError: if the file does not exist, or cannot be read.
    """
    with open_input(path, options_of(format_of(path, format))) as source:
        if not isinstance(source, JsonFile):
            return EMBEDDING in source.columns
        for _, line in source.rows():
            if EMBEDDING in line or "data" in _body(line):
                return True
            if "outputs" in line or "choices" in _body(line) or {*ANSWERS} & line.keys():
                return False
    return False


def read_vectors(path: Path, format: str | None) -> Iterator[VectorRows]:
    """Yield a file's rows, a few thousand at a time.

    :param format: None: from the suffix.
    :raises DistilleryError: naming the file, the row or column, and the remedy.
    """
    kind = format_of(path, format)
    if kind == "vllm":
        raise DistilleryError(
            f"{path}: these are vLLM's answers, which have no `{EMBEDDING}`. Give the output of "
            "`vllm run-batch` for /v1/embeddings, or lines of text and embedding."
        )
    with open_input(path, options_of(kind)) as source:
        if isinstance(source, ArrowFile):
            parts = _table_rows(path, source)
        else:
            parts = _line_rows(path, _lines(path, kind, source))
        for rows in parts:
            _check_values(path, rows)
            yield rows


def _lines(path: Path, kind: str, source: InputFile) -> Iterator[Line]:
    def check(names: list[str]) -> None:
        _check_columns(path, names)

    for number, line in rows_in(source, COLUMNS.__contains__, check):
        where = f"{path}: row {number}"
        if kind == "openai-batch":
            with batch_line(where):
                parsed = _of_batch(number, line, where)
            yield parsed
        elif "metadata" not in line or "text" in line:
            yield _of_line(number, line, where)


def _check_columns(path: Path, names: Sequence[str]) -> None:
    for name in COLUMNS[:2]:
        if name not in names:
            raise DistilleryError(
                f"{path}: no column {name!r}; there are {', '.join(map(repr, names)) or 'none'}. "
                "docs/teacher-files.md has the columns; `distill teacher check` tries a file."
            )


def _table_rows(path: Path, source: ArrowFile) -> Iterator[VectorRows]:
    names = source.columns
    _check_columns(path, names)
    first = 1
    for batch in source.table.batches([name for name in COLUMNS if name in names]):
        yield _of_table(path, batch, np.arange(first, first + batch.num_rows))
        first += batch.num_rows


def _of_table(path: Path, batch: pa.RecordBatch, numbers: np.ndarray) -> VectorRows:
    errors: list[str] = []
    if "error" in batch.schema.names:
        failed = _failed(batch["error"])
        errors = [str(value) for value in batch["error"].filter(failed).to_pylist()]
        batch, numbers = batch.filter(pc.invert(failed)), numbers[~failed.to_numpy(False)]
    texts = batch["text"].to_pylist()
    for number, text in zip(numbers, texts, strict=True):
        _check_text(text, f"{path}: row {number}")
    vectors = _matrix(path, batch[EMBEDDING], numbers)
    return VectorRows(numbers, content_keys([texts]), vectors, errors)


def _failed(errors: pa.Array) -> pa.BooleanArray:
    """Return a mask of the rows that give a reason for having no vector."""
    if pa.types.is_null(errors.type):
        return pa.array(np.zeros(len(errors), bool))
    mask = pc.not_equal(errors.cast(pa.large_string()), "")
    return pc.fill_null(mask, False)


def _matrix(path: Path, column: pa.Array, numbers: np.ndarray) -> np.ndarray:
    """Return a column of lists as an array, float32 (rows, width), without Python objects."""
    if not len(column):
        return np.zeros((0, 0), np.float32)
    if not _is_list_of_numbers(column.type):
        raise DistilleryError(
            f"{path}: the column {EMBEDDING!r} is {column.type}, not a list of numbers. Write "
            "lists of float32."
        )
    if column.null_count:
        raise _no_vector(f"{path}: row {numbers[pc.index(column.is_null(), True).as_py()]}")
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    _check_widths(path, lengths, numbers)
    values = column.flatten()
    if values.null_count:
        row = pc.index(values.is_null(), True).as_py() // lengths[0]
        raise _no_vector(f"{path}: row {numbers[row]}")
    with np.errstate(over="ignore"):
        flat = values.to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    return flat.reshape(len(column), -1)


def _is_list_of_numbers(type_: pa.DataType) -> bool:
    lists = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    if not any(is_list(type_) for is_list in lists):
        return False
    return pa.types.is_floating(type_.value_type) or pa.types.is_integer(type_.value_type)


def _line_rows(path: Path, lines: Iterator[Line]) -> Iterator[VectorRows]:
    numbers: list[int] = []
    keys: list[int] = []
    vectors: list[np.ndarray] = []
    errors: list[str] = []

    def taken() -> VectorRows:
        _check_widths(path, np.array([len(vector) for vector in vectors]), np.array(numbers))
        matrix = np.array(vectors, np.float32) if vectors else np.zeros((0, 0), np.float32)
        rows = np.array(numbers, np.int64), np.array(keys, np.uint64)
        result = VectorRows(*rows, matrix, [*errors])
        for values in (numbers, keys, vectors, errors):
            values.clear()
        return result

    for number, key, value, error in lines:
        if error is not None:
            errors.append(error)
        else:
            numbers.append(number)
            keys.append(key)
            vectors.append(_vector(value, f"{path}: row {number}"))
        if len(numbers) + len(errors) == LINES:
            yield taken()
    yield taken()


def _of_line(number: int, line: Mapping[str, Any], where: str) -> Line:
    if line.get("error"):
        return number, None, None, str(line["error"])
    _check_text(line.get("text"), where)
    return number, int(content_keys([[line["text"]]])[0]), line.get(EMBEDDING), None


def _of_batch(number: int, line: Mapping[str, Any], where: str) -> Line:
    """Parse a line of an embeddings batch's output."""
    key, response = content_key(line.get("custom_id"), where), line.get("response") or {}
    failed = line.get("error") or _body(line).get("error")
    if failed or response.get("status_code", 200) != 200:
        return number, None, None, failure(failed, response)
    data = _body(line).get("data")
    first = data[0] if isinstance(data, list) and data else None
    if not isinstance(first, Mapping):
        raise DistilleryError(
            f"{where}: no response.body.data[0].{EMBEDDING}. Give the output of a batch for "
            "/v1/embeddings."
        )
    return number, key, first.get(EMBEDDING), None


def _vector(value: Any, where: str) -> np.ndarray:
    """Return a row's vector, float32 (width,), from a list, JSON, or an API's base64."""
    if value is None:
        raise _no_vector(where)
    try:
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = json.loads(value)
        if isinstance(value, str):
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4")
        with np.errstate(over="ignore"):
            vector = np.array(value, np.float32)
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise _no_list(where, value) from error
    if vector.ndim != 1 or isinstance(value, Mapping):
        raise _no_list(where, value)
    return vector


def _body(line: Mapping[str, Any]) -> Mapping[str, Any]:
    response = line.get("response")
    body = response.get("body") if isinstance(response, Mapping) else None
    return body if isinstance(body, Mapping) else {}


def _check_text(text: Any, where: str) -> None:
    if not isinstance(text, str) or not text.strip():
        raise DistilleryError(f"{where}: `text` is missing or not text. Fill it in.")


def _check_widths(path: Path, lengths: np.ndarray, numbers: np.ndarray) -> None:
    """Check that all rows have as many values as the first, and at least one."""
    if len(empty := np.flatnonzero(lengths == 0)):
        raise _no_vector(f"{path}: row {numbers[empty[0]]}")
    if len(other := np.flatnonzero(lengths != lengths[:1])):
        row = other[0]
        raise DistilleryError(
            f"{path}: row {numbers[row]}: `{EMBEDDING}` has {lengths[row]:,} values, that of row "
            f"{numbers[0]} has {lengths[0]:,}. Use vectors of one model and one length."
        )


def _check_values(path: Path, rows: VectorRows) -> None:
    """Check that vectors have a direction: all values finite, and not all 0."""
    for broken, what in (
        (~np.isfinite(rows.vectors).all(axis=1), "a value is not a finite number"),
        (~rows.vectors.any(axis=1), "all values are 0"),
    ):
        if broken.any():
            raise DistilleryError(
                f"{path}: row {rows.numbers[broken.argmax()]}: `{EMBEDDING}`: {what}. Correct it, "
                "or give the reason in `error`."
            )


def _no_vector(where: str) -> DistilleryError:
    return DistilleryError(
        f"{where}: no `{EMBEDDING}`, or not all of it. In a row without one, give the reason in "
        "`error`."
    )


def _no_list(where: str, value: Any) -> DistilleryError:
    return DistilleryError(
        f"{where}: {value!r:.40} is not a list of numbers. Write `{EMBEDDING}` as [0.1, -0.2, …]."
    )
