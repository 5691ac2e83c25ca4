"""Parquet and Arrow files, a few thousand rows at a time."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import check_no_pointer
from pipeline_lib.tables.faults import check_once
from pipeline_lib.tables.values import LISTS, plain_columns

BATCH_ROWS = 4096


@dataclass(frozen=True)
class ArrowTable:
    """An open file: its schema, and a function that yields batches of columns."""

    path: Path
    schema: pa.Schema
    batches: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]

    def types(self) -> dict[str, str | None]:
        """Return the types of the columns; None: of plain values, or for the path of such within."""
        types: dict[str, str | None] = {}
        for field in self.schema:
            inner = [*self._plain_paths(field)]
            types |= dict.fromkeys(inner) if inner else {field.name: _type_name(field.type)}
        return types

    def _plain_paths(self, field: pa.Field) -> Iterator[str]:
        is_list = kinds.is_list(field.type) or kinds.is_large_list(field.type)
        if is_plain_type(field.type):
            if not is_bytes_type(field.type) or all(map(_is_utf8, self._values(field.name))):
                yield field.name
        elif kinds.is_struct(field.type) or (is_list and all(map(_has_single_values, self._values(field.name)))):
            yield from plain_columns(field.name, [v for part in self._values(field.name) for v in part.to_pylist()])

    def _values(self, name: str) -> Iterator[pa.Array]:
        return (batch[name] for batch in self.batches([name]))

    def class_names(self) -> dict[str, list[str]]:
        """Return the class names of the columns that ``datasets`` wrote as a ClassLabel."""
        try:
            metadata = json.loads((self.schema.metadata or {}).get(b"huggingface", b"{}"))
        except ValueError:
            return {}
        features: dict[str, Any] = metadata.get("info", {}).get("features", {})
        # Those of a list describe its entries.
        entries = {n: f.get("feature", f) if isinstance(f, dict) else f for n, f in features.items()}
        return {
            name: feature["names"]
            for name, feature in entries.items()
            if isinstance(feature, dict) and isinstance(feature.get("names"), list)
        }


@contextmanager
def open_arrow(path: Path, format: str) -> Iterator[ArrowTable]:
    """Open a file.

    :param format: parquet | arrow, as a stream or a file.
    """
    check_no_pointer(path)
    try:
        with _opened(path, format) as (schema, read):
            check_once(str(path), schema.names)
            yield ArrowTable(path, schema, lambda names: _sliced(read([*names])))
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise PotstillError(
            f"{path}: not a readable {format.capitalize()} file ({error}). Correct its format, or write it again."
        ) from error


@contextmanager
def _opened(path: Path, format: str) -> Iterator[tuple[pa.Schema, Any]]:
    import pyarrow.parquet as pq

    if format == "parquet":
        # Memory-mapped: a reader of the plain file keeps every row group that it has read.
        with pq.ParquetFile(path, memory_map=True) as file:
            yield (file.schema_arrow, lambda names: file.iter_batches(batch_size=BATCH_ROWS, columns=names))
        return
    with pa.memory_map(str(path)) as source:
        try:
            reader = pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            # `datasets` writes the stream format.
            source.seek(0)
            yield pa.ipc.open_stream(source).schema, lambda names: _of_stream(source, names)
            return
        yield (
            reader.schema,
            lambda names: (reader.get_batch(n).select(names) for n in range(reader.num_record_batches)),
        )


def _of_stream(source: pa.NativeFile, names: list[str]) -> Iterator[pa.RecordBatch]:
    source.seek(0)
    for batch in pa.ipc.open_stream(source):
        yield batch.select(names)


def _sliced(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


def is_plain_type(type_: pa.DataType) -> bool:
    """Whether values of a type are texts, numbers or truth values; bytes may hold UTF-8."""
    if kinds.is_dictionary(type_):
        type_ = type_.value_type
    if kinds.is_primitive(type_):
        return not kinds.is_temporal(type_)
    texts = kinds.is_string, kinds.is_large_string, kinds.is_string_view
    others = is_bytes_type, kinds.is_decimal, kinds.is_null
    return any(is_kind(type_) for is_kind in (*texts, *others))


def _type_name(type_: pa.DataType) -> str:
    if kinds.is_list(type_) or kinds.is_large_list(type_):
        inner = type_.value_type
        if kinds.is_string(inner) or kinds.is_large_string(inner) or kinds.is_integer(inner):
            return LISTS
    return str(type_)


def _is_utf8(values: pa.Array) -> bool:
    try:
        pc.cast(values, pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _has_single_values(lists: pa.Array) -> bool:
    """Whether lists have at most one value each, which can be told without reading them."""
    return (pc.max(pc.list_value_length(lists)).as_py() or 0) <= 1


def is_bytes_type(type_: pa.DataType) -> bool:
    """Whether values of a type are bytes."""
    return kinds.is_binary(type_) or kinds.is_large_binary(type_) or kinds.is_binary_view(type_)
