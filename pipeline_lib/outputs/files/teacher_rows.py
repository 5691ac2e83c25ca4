"""The rows of external teachers' files, of answers or vectors, and what their metadata says.

Besides the formats of :mod:`pipeline_lib.tables.reader`, the output of a batch of requests is read:
that of several providers, and vLLM's own.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.file_formats import FORMATS
from pipeline_lib.base.file_formats import format_of as format_of_name
from pipeline_lib.tables.reader import ArrowFile, JsonFile, ReadOptions, open_input

BATCHES = {
    "openai-batch": [{"custom_id", "response"}, {"custom_id", "body"}, {"custom_id", "error"}],
    "anthropic-batch": [{"custom_id", "result"}, {"custom_id", "params"}],
    "bedrock-batch": [{"recordId", "modelOutput"}, {"recordId", "modelInput"}],
    "gemini-batch": [
        {"key", "response"},
        {"key", "request"},
        {"metadata", "response"},
        {"request", "response"},
        {"request", "status"},
        {"key", "error"},
    ],
    "vllm": [{"outputs"}],
}
"""The keys that identify the lines of a batch: of its results, its failures, or its requests."""
_OF_ROWS, _OF_REPLIES = ({"label", "probs", "logits"}, {"response", "result", "modelOutput", "outputs"})
"""What a row with a text has, and a line of a batch to which the text was added."""
_KEYS = ("classes", "provenance")


@dataclass(frozen=True)
class Described:
    """A file's metadata: its classes in order, and the provenance of its answers."""

    classes: list[str] | None = None
    provenance: dict[str, str] = field(default_factory=dict)


def options_of(format: str | None) -> ReadOptions:
    """Return the reader's options for a format of teachers' files, which may be a batch's."""
    return ReadOptions(format="jsonl" if format in BATCHES else format)


def format_of(path: Path, format: str | None) -> str:
    """Return a file's format: the one that is named, or that of its suffix; a batch's by its keys."""
    if not path.is_file():
        raise PotstillError(f"{path}: not found. Put the file there, or correct the path.")
    file_format = format or format_of_name(path)
    if file_format is None:
        raise PotstillError(
            f"{path}: no format has this suffix; there are {', '.join(FORMATS)}. Rename the file, or give its `format`."
        )
    if format is None and file_format == "jsonl":
        return _batch_of(_first_row(path)) or file_format
    return file_format


def _batch_of(row: dict[str, Any]) -> str | None:
    """Return whose batch a line is from; None if it is an ordinary row."""
    keys = row.keys()
    of_row = keys & _OF_ROWS or isinstance(row.get("response"), str) or not keys & _OF_REPLIES
    if "text" in keys and of_row:
        return None
    batches = (kind for kind, shapes in BATCHES.items() if any(shape <= keys for shape in shapes))
    return next(batches, None)


def described(path: Path, format: str) -> Described:
    """Return the metadata of a file in this format."""
    if format == "jsonl":
        first = _first_row(path)
        return _description(path, first["metadata"]) if "metadata" in first else Described()
    with open_input(path, options_of(format)) as source:
        if isinstance(source, ArrowFile):
            return _of_schema(path, source.table.schema)
    return Described()


def _first_row(path: Path) -> dict[str, Any]:
    with open_input(path, ReadOptions(format="jsonl")) as source:
        assert isinstance(source, JsonFile)
        return next((row for _, row in source.rows()), {})


def _of_schema(path: Path, schema: pa.Schema) -> Described:
    raw = schema.metadata or {}
    try:
        metadata = {name: json.loads(raw[name.encode()]) for name in _KEYS if name.encode() in raw}
    except ValueError as error:
        raise PotstillError(
            f"{path}: the metadata `classes` and `provenance` are not JSON ({error}). Write them with json.dumps."
        ) from error
    if "classes" not in metadata and b"huggingface" in raw:
        # `datasets` stores the names of a ClassLabel here.
        features = json.loads(raw[b"huggingface"]).get("info", {}).get("features", {})
        metadata["classes"] = features.get("label", {}).get("names")
    return _description(path, metadata)


def _description(path: Path, metadata: Any) -> Described:
    if not isinstance(metadata, dict) or set(metadata) - set(_KEYS):
        raise PotstillError(f"{path}: metadata may only have {', '.join(_KEYS)}. Correct it.")
    classes, provenance = metadata.get("classes"), metadata.get("provenance") or {}
    if classes is not None and not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        raise PotstillError(f"{path}: metadata `classes` is not a list of names. Correct it.")
    if not isinstance(provenance, dict):
        raise PotstillError(f"{path}: metadata `provenance` is not a mapping. Correct it.")
    return Described(classes, {str(name): str(value) for name, value in provenance.items()})
