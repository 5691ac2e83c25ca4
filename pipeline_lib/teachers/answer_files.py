"""A teacher's answers as they stand in files: Parquet, Arrow, CSV, JSON lines, a batch's output.

A row has a ``text`` (and ``text_pair``) and one of ``logits``, ``probs`` and ``label``; it may have
``weight``, ``coverage`` and ``error``.  Numbers of classes are a list, in the order of the file's
``classes``, or a mapping from names; in CSV also one column each, ``probs.NAME``.
docs/teacher-files.md describes the schema.
"""

import csv
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import unreadable
from pipeline_lib.teachers.batch_output import read_batch_line, read_vllm_line

ENDINGS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
"""Formats by the ending of a file's name."""
BATCHES = {"openai-batch": {"custom_id", "response"}, "vllm": {"outputs"}}
"""The keys by which the lines of a batch's output are known."""
ANSWERS = ("logits", "probs", "label")
"""The columns of which a row has one."""
COLUMNS = ("text", "text_pair", *ANSWERS, "weight", "coverage", "error")
Numbers = list[float] | dict[str, float]
"""One per class: in the order of the file's classes, or by name."""


@dataclass(frozen=True)
class Given:
    """One row of a file.

    :ivar number: as an editor shows it; :ivar key: the content key, where the row names that and
        not the text; :ivar kind: one of :data:`ANSWERS`, None: there is an ``error``.
    """

    number: int
    texts: tuple[str, ...] | None
    key: int | None
    kind: str | None
    value: Numbers | str | float | None
    weight: float | None = None
    coverage: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class Described:
    """What a file says of itself: its classes in their order, and where its answers are from."""

    classes: list[str] | None = None
    provenance: dict[str, str] = field(default_factory=dict)


def format_of(path: Path, format: str | None) -> str:
    """Return a file's format: the one named, or that of its ending; a batch's by its first line.

    :raises DistilleryError: if the ending says nothing, or the file is not there.
    """
    if not path.is_file():
        raise DistilleryError(f"{path}: not found. Put the file there, or correct the path.")
    found = format or ENDINGS.get(path.suffix.lower())
    if format is None and found == "jsonl":
        _, first = next(_json_lines(path), (0, {}))
        return next((kind for kind, keys in BATCHES.items() if keys <= set(first)), found)
    if found is None:
        raise DistilleryError(
            f"{path}: no format goes with this ending; there are {', '.join(ENDINGS)}. Rename the "
            "file, or name its `format`."
        )
    return found


def read_answers(
    path: Path, format: str | None, labels: list[str]
) -> tuple[Described, Iterator[Given]]:
    """Read what a file says of itself, and its rows one by one.

    :param format: null: by the ending; :param labels: the task's classes, whose probabilities are
        looked for in a batch's tokens.
    :raises DistilleryError: naming the file, the row or column, and the remedy.
    """
    kind = format_of(path, format)
    if kind in ("parquet", "arrow"):
        table = _read_table(path, kind)
        return _described(path, table.schema), _table_rows(path, table)
    if kind == "csv":
        return Described(), _csv_rows(path)
    if kind == "jsonl":
        return _json_description(path), _json_rows(path)
    read = read_batch_line if kind == "openai-batch" else read_vllm_line
    return Described(), _batch_rows(path, read, labels)


def _read_table(path: Path, kind: str) -> pa.Table:
    import pyarrow.parquet as pq

    try:
        if kind == "parquet":
            return pq.read_table(path)
        with pa.memory_map(str(path)) as source:
            try:
                return pa.ipc.open_file(source).read_all()
            except pa.ArrowInvalid:
                # `datasets` writes the stream format.
                source.seek(0)
                return pa.ipc.open_stream(source).read_all()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DistilleryError(
            f"{path}: not a readable {kind} file ({error}). Correct its `format`, or write it "
            "again."
        ) from error


def _described(path: Path, schema: pa.Schema) -> Described:
    found = schema.metadata or {}
    try:
        given = {name: json.loads(found[name.encode()]) for name in _KEYS if name.encode() in found}
    except ValueError as error:
        raise DistilleryError(
            f"{path}: the metadata `classes` and `provenance` are not JSON ({error}). Write them "
            "with json.dumps."
        ) from error
    if "classes" not in given and b"huggingface" in found:
        # `datasets` keeps the names of a ClassLabel.
        features = json.loads(found[b"huggingface"]).get("info", {}).get("features", {})
        given["classes"] = features.get("label", {}).get("names")
    return _description(path, given)


_KEYS = ("classes", "provenance")


def _description(path: Path, given: Any) -> Described:
    if not isinstance(given, dict) or set(given) - set(_KEYS):
        raise DistilleryError(f"{path}: metadata has {', '.join(_KEYS)} and no more. Correct it.")
    classes, provenance = given.get("classes"), given.get("provenance") or {}
    if classes is not None and not (
        isinstance(classes, list) and all(isinstance(name, str) for name in classes)
    ):
        raise DistilleryError(f"{path}: metadata `classes` is no list of names. Correct it.")
    if not isinstance(provenance, dict):
        raise DistilleryError(f"{path}: metadata `provenance` is no mapping. Correct it.")
    return Described(classes, {str(name): str(value) for name, value in provenance.items()})


def _table_rows(path: Path, table: pa.Table) -> Iterator[Given]:
    names = [name for name in table.column_names if _is_ours(name)]
    _check_columns(path, names)
    number = 0
    for batch in table.select(names).to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            number += 1
            yield _given(path, number, row)


def _csv_rows(path: Path) -> Iterator[Given]:
    limit = csv.field_size_limit(2**31 - 1)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            _check_columns(path, reader.fieldnames or [])
            for number, row in enumerate(reader, 2):
                if None in row or None in row.values():
                    raise DistilleryError(
                        f"{path}: row {number} has not as many columns as the first line. Quote "
                        "texts with commas or quotes, and double the quotes inside."
                    )
                yield _given(path, number, {k: v for k, v in row.items() if v != ""}, plain=True)
    except (csv.Error, UnicodeDecodeError) as error:
        raise DistilleryError(f"{path}: not valid CSV in UTF-8 ({error}). Correct it.") from error
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        csv.field_size_limit(limit)


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as stream:
            for number, line in enumerate(stream, 1):
                if not line.strip():
                    continue
                found = json.loads(line)
                if not isinstance(found, dict):
                    raise DistilleryError(
                        f"{path}: row {number} is not a JSON object. Write one per line."
                    )
                yield number, found
    except (ValueError, RecursionError) as error:
        raise DistilleryError(
            f"{path}: a row is not valid JSON in UTF-8 ({error}). Write one object per line."
        ) from error
    except OSError as error:
        raise unreadable(path, error) from error


def _json_description(path: Path) -> Described:
    _, first = next(_json_lines(path), (0, {}))
    return _description(path, first["metadata"]) if "metadata" in first else Described()


def _json_rows(path: Path) -> Iterator[Given]:
    for number, row in _json_lines(path):
        if "metadata" not in row:
            yield _given(path, number, row)


def _batch_rows(path: Path, read: Any, labels: list[str]) -> Iterator[Given]:
    for number, line in _json_lines(path):
        found = read(line, labels, f"{path}: row {number}")
        value = found.probs if found.error is None else None
        yield Given(
            *(number, found.texts, found.key, None if value is None else "probs", value),
            error=found.error,
            coverage=found.coverage,
        )


def _is_ours(name: str) -> bool:
    return name in COLUMNS or name.partition(".")[0] in ANSWERS[:2]


def _check_columns(path: Path, names: list[str]) -> None:
    remedy = "docs/teacher-files.md has the columns; `distill teacher check` tries a file."
    if "text" not in names:
        raise DistilleryError(
            f"{path}: no column 'text'; there are {', '.join(map(repr, names)) or 'none'}. {remedy}"
        )
    if not any(name.partition(".")[0] in ANSWERS for name in names):
        raise DistilleryError(f"{path}: none of the columns {', '.join(ANSWERS)}. {remedy}")


def _given(path: Path, number: int, row: Mapping[str, Any], plain: bool = False) -> Given:
    """Take one row's values.

    :param plain: values are text, as in CSV.
    """
    where = f"{path}: row {number}"
    values = {name: value for name, value in row.items() if value is not None}
    for kind in ANSWERS[:2]:
        own = {n.partition(".")[2]: v for n, v in values.items() if n.startswith(f"{kind}.")}
        if own:
            values[kind] = own
    texts = tuple(values[name] for name in ("text", "text_pair") if name in values)
    if "text" not in values or not all(isinstance(text, str) and text.strip() for text in texts):
        raise DistilleryError(f"{where}: `text` is missing or no text. Fill it in.")
    number_of = {name: _number(values.get(name), name, where) for name in ("weight", "coverage")}
    if number_of["weight"] is not None and number_of["weight"] < 0:
        raise DistilleryError(f"{where}: `weight` is below 0. Correct it.")
    if number_of["coverage"] is not None and not 0.0 <= number_of["coverage"] <= 1.0:
        raise DistilleryError(f"{where}: `coverage` is a share, from 0 to 1. Correct it.")
    error = values.get("error")
    if error:
        return Given(number, texts, None, None, None, error=str(error), **number_of)
    kinds = [kind for kind in ANSWERS if kind in values]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none"
        raise DistilleryError(
            f"{where}: one of {', '.join(ANSWERS)} is wanted, found {found}. Keep one; a row "
            "without an answer says why in `error`."
        )
    [kind] = kinds
    value = values[kind]
    if kind != "label":
        value = _numbers(_parsed(value, where) if plain else value, where)
    return Given(number, texts, None, kind, value, error=None, **number_of)


def _parsed(value: Any, where: str) -> Any:
    """Return a CSV's list or mapping, which is written as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise DistilleryError(
            f"{where}: {value!r:.40} is no list of numbers ({error}). Write [0.1, 0.9], or a "
            "column for each class, as probs.NAME."
        ) from error


def _numbers(value: Any, where: str) -> Numbers:
    if isinstance(value, Mapping):
        # Arrow's structs have every name, and null where there is none.
        named = {name: _number(part, name, where) for name, part in value.items()}
        return {name: part for name, part in named.items() if part is not None}
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):  # a map of Arrow's
            return _numbers(dict(value), where)
        found = [_number(part, "a class", where) for part in value]
        if None in found:
            raise DistilleryError(f"{where}: a class has no number. Fill it in, or name `error`.")
        return found
    return [_number(value, "the answer", where)]


def _number(value: Any, name: str, where: str) -> float | None:
    if value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise DistilleryError(
            f"{where}: {name} is {value!r:.40}, not a finite number. Correct it, or say in `error` "
            "why there is no answer."
        )
    return found
