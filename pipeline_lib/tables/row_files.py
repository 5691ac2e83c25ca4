"""Reading rows of external teachers' files: Parquet, Arrow, CSV, JSON Lines, a batch's output.

They are read a few at a time, so that memory does not grow with the file.
"""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import unreadable

ENDINGS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
"""Formats by file suffix."""
BATCHES = {"openai-batch": {"custom_id", "response"}, "vllm": {"outputs"}}
"""The keys that identify the lines of a batch's output."""
TABLES = ("parquet", "arrow")
BATCH_ROWS = 10_000
"""Rows of a table to read at a time."""
_KEYS = ("classes", "provenance")


@dataclass(frozen=True)
class Described:
    """A file's metadata: its classes in order, and the provenance of its answers."""

    classes: list[str] | None = None
    provenance: dict[str, str] = field(default_factory=dict)


def format_of(path: Path, format: str | None) -> str:
    """Return a file's format: the one given, or from its suffix; a batch's from its first line.

    :raises DistilleryError: if the suffix is unknown, or the file does not exist.
    """
    if not path.is_file():
        raise DistilleryError(f"{path}: not found. Put the file there, or correct the path.")
    file_format = format or ENDINGS.get(path.suffix.lower())
    if format is None and file_format == "jsonl":
        _, first = next(json_lines(path), (0, {}))
        return next((kind for kind, keys in BATCHES.items() if keys <= set(first)), file_format)
    if file_format is None:
        raise DistilleryError(
            f"{path}: no format has this suffix; there are {', '.join(ENDINGS)}. Rename the "
            "file, or give its `format`."
        )
    return file_format


def described(path: Path, kind: str) -> Described:
    """Return the metadata of a file in this format.

    :raises DistilleryError: if it has unknown metadata, or some that is not JSON.
    """
    if kind in TABLES:
        return _of_schema(path, table_schema(path, kind))
    if kind != "jsonl":
        return Described()
    _, first = next(json_lines(path), (0, {}))
    return _description(path, first["metadata"]) if "metadata" in first else Described()


def table_schema(path: Path, kind: str) -> pa.Schema:
    """Return the schema of a Parquet or Arrow file."""
    with _reading(path, kind) as (schema, _):
        return schema


def table_batches(path: Path, kind: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet or Arrow file, at most :data:`BATCH_ROWS` at a time."""
    with _reading(path, kind) as (_, batches):
        for batch in batches(columns):
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS)


@contextmanager
def _reading(path: Path, kind: str) -> Iterator[tuple[pa.Schema, Any]]:
    """Open a table; yield its schema, and a function that yields batches of selected columns.

    :raises DistilleryError: if it is truncated, or in another format.
    """
    import pyarrow.parquet as pq

    try:
        if kind == "parquet":
            # Memory-mapped: a reader of the plain file keeps every row group that it has read.
            with pq.ParquetFile(path, memory_map=True) as file:
                yield (
                    file.schema_arrow,
                    lambda columns: file.iter_batches(batch_size=BATCH_ROWS, columns=columns),
                )
            return
        with pa.memory_map(str(path)) as source:
            try:
                reader = pa.ipc.open_file(source)
                every = (reader.get_batch(n) for n in range(reader.num_record_batches))
            except pa.ArrowInvalid:
                # `datasets` writes the stream format.
                source.seek(0)
                every = reader = pa.ipc.open_stream(source)
            yield reader.schema, lambda columns: (batch.select(columns) for batch in every)
    except DistilleryError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DistilleryError(
            f"{path}: not a readable {kind} file ({error}). Correct its `format`, or write it "
            "again."
        ) from error


def _of_schema(path: Path, schema: pa.Schema) -> Described:
    raw = schema.metadata or {}
    try:
        metadata = {name: json.loads(raw[name.encode()]) for name in _KEYS if name.encode() in raw}
    except ValueError as error:
        raise DistilleryError(
            f"{path}: the metadata `classes` and `provenance` are not JSON ({error}). Write them "
            "with json.dumps."
        ) from error
    if "classes" not in metadata and b"huggingface" in raw:
        # `datasets` stores the names of a ClassLabel here.
        features = json.loads(raw[b"huggingface"]).get("info", {}).get("features", {})
        metadata["classes"] = features.get("label", {}).get("names")
    return _description(path, metadata)


def _description(path: Path, metadata: Any) -> Described:
    if not isinstance(metadata, dict) or set(metadata) - set(_KEYS):
        raise DistilleryError(f"{path}: metadata may only have {', '.join(_KEYS)}. Correct it.")
    classes, provenance = metadata.get("classes"), metadata.get("provenance") or {}
    if classes is not None and not (
        isinstance(classes, list) and all(isinstance(name, str) for name in classes)
    ):
        raise DistilleryError(f"{path}: metadata `classes` is not a list of names. Correct it.")
    if not isinstance(provenance, dict):
        raise DistilleryError(f"{path}: metadata `provenance` is not a mapping. Correct it.")
    return Described(classes, {str(name): str(value) for name, value in provenance.items()})


def csv_columns(path: Path) -> list[str]:
    """Return the names in the first line of a CSV file."""
    with _csv_reader(path) as reader:
        return list(reader.fieldnames or [])


def csv_lines(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file with their line numbers in an editor, without empty values.

    A row that spans several lines has the number of its last.

    :raises DistilleryError: if a row has more or fewer columns than the first line, or is not CSV.
    """
    with _csv_reader(path) as reader:
        for row in reader:
            number = reader.line_num
            if None in row or None in row.values():
                raise DistilleryError(
                    f"{path}: row {number} does not have as many columns as the first line. Quote "
                    "texts with commas or quotes, and double the quotes inside."
                )
            yield number, {name: value for name, value in row.items() if value != ""}


@contextmanager
def _csv_reader(path: Path) -> Iterator[csv.DictReader]:
    limit = csv.field_size_limit(2**31 - 1)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            yield csv.DictReader(stream, strict=True)
    except (csv.Error, UnicodeDecodeError) as error:
        raise DistilleryError(f"{path}: not valid CSV in UTF-8 ({error}). Correct it.") from error
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        csv.field_size_limit(limit)


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON Lines file with their line numbers, including metadata.

    :raises DistilleryError: if a line is not a JSON object.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as stream:
            for number, line in enumerate(stream, 1):
                if not line.strip():
                    continue
                value = _json_value(line, f"{path}: row {number}")
                if not isinstance(value, dict):
                    raise DistilleryError(
                        f"{path}: row {number} is not a JSON object. Write one per line."
                    )
                yield number, value
    except UnicodeDecodeError as error:
        raise DistilleryError(f"{path}: not UTF-8 ({error}). Save the file as UTF-8.") from error
    except OSError as error:
        raise unreadable(path, error) from error


def _json_value(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        exact = isinstance(error, json.JSONDecodeError)
        what = f"{error.msg}, character {error.colno}" if exact else str(error)
        raise DistilleryError(
            f"{where} is not valid JSON ({what}). Write one object per line."
        ) from error
