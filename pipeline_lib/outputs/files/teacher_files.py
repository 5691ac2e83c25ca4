"""External teachers' files: their metadata, and rows that each give something to a text.

A row is joined to its text by the text itself, or by its content key: the id of the request for it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, starmap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.file_formats import FORMATS, format_of
from pipeline_lib.base.text import printable
from pipeline_lib.outputs.files.keyed_table import content_keys
from pipeline_lib.tables.reader import ArrowFile, InputFile, JsonFile, ReadOptions, RowBatch, open_input

LINES = 2000
"""Rows to read at a time: their numbers are Python objects until they become an array."""
LONGEST = 200
"""Characters of a reason for no value that are kept."""
ANSWERS = ("logits", "probs", "label")
"""The answer columns; a row has exactly one of them."""
COLUMNS = ("text", "text_pair", "key", *ANSWERS, "weight", "error")
IDS = ("key", "custom_id", "recordId", "request_id", "metadata.key")
"""Paths to the id of a request, as providers return it."""
ASKED = "request.contents.parts.text"
"""The path to the text that was asked about: Vertex AI returns the request instead of an id."""
_TEXTS = ("text", "text_pair", "key", "label", "error")
"""The columns of texts."""
_KEY = re.compile("[0-9a-f]{16}")
_METADATA = ("classes", "provenance")


@dataclass(frozen=True)
class Described:
    """A file's metadata: its classes in order, and the provenance of its answers."""

    classes: list[str] | None = None
    provenance: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Given:
    """What one row of a file gives to a text, which it names by a content key or in full.

    :ivar kind: the column of the answer; None: there is an ``error`` instead.
    :ivar of_reply: whether a model wrote it: then a fault in it is an ``error`` of this row alone.
    """

    texts: tuple[str, ...] | None = None
    key: int | None = None
    kind: str | None = None
    value: Any = None
    weight: float | None = None
    error: str | None = None
    of_reply: bool = False


@dataclass(frozen=True)
class GivenRows:
    """Some rows of a file; the arrays are of those that have a value.

    :ivar numbers: line numbers in an editor, int64 (rows,); :ivar keys: content keys, uint64 (rows,).
    :ivar values: float32 (rows, width); :ivar weights: float64 (rows,), NaN where there is none.
    :ivar rows: how many rows there are in all; :ivar errors: how often each reason for no value was given.
    """

    numbers: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    rows: int
    errors: Counter[str]


def described(path: Path) -> Described:
    """Return a file's metadata."""
    if format_of(path) is None and path.is_file():
        raise PotstillError(f"{path}: no format has this suffix; there are {', '.join(FORMATS)}. Rename the file.")
    with open_input(path, ReadOptions()) as source:
        if isinstance(source, ArrowFile):
            return _of_schema(path, source.table.schema)
        if isinstance(source, JsonFile):
            row = next((row for _, row in source.rows()), {})
            return _description(path, row["metadata"]) if row.keys() == {"metadata"} else Described()
    return Described()


def _of_schema(path: Path, schema: pa.Schema) -> Described:
    raw = schema.metadata or {}
    try:
        metadata = {name: json.loads(raw[name.encode()]) for name in _METADATA if name.encode() in raw}
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
    if not isinstance(metadata, dict) or set(metadata) - set(_METADATA):
        raise PotstillError(f"{path}: metadata may only have {', '.join(_METADATA)}. Correct it.")
    classes, provenance = metadata.get("classes"), metadata.get("provenance") or {}
    if classes is not None and not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        raise PotstillError(f"{path}: metadata `classes` is not a list of names. Correct it.")
    if not isinstance(provenance, dict):
        raise PotstillError(f"{path}: metadata `provenance` is not a mapping. Correct it.")
    return Described(classes, {str(name): str(value) for name, value in provenance.items()})


def read_rows(path: Path, parse: Callable[[dict[str, Any], str], Given]) -> Iterator[tuple[int, Given]]:
    """Yield a file's rows with their numbers.

    :param parse: returns what a row gives; its second argument names the row.
    """
    with open_input(path, ReadOptions()) as source:
        if not isinstance(source, JsonFile):
            _check_columns(path, source.columns)
        for number, row in _rows_in(source):
            if row.keys() != {"metadata"}:
                yield number, parse(row, f"{path}: row {number}")


def is_ours(name: str) -> bool:
    """Whether a column is one of a teacher's file, as ``probs.NAME`` is."""
    return name in COLUMNS or name.partition(".")[0] in ANSWERS[:2]


def _rows_in(source: InputFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the numbers of an open file's rows, and their values that are not missing."""
    if isinstance(source, JsonFile):
        yield from source.rows()
        return
    names = [*filter(is_ours, source.columns)]
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
    return batch.texts(name) if name in _TEXTS else values


def _check_columns(path: Path, names: Sequence[str]) -> None:
    for choice in (("text", "key"), ANSWERS):
        if not any(name.partition(".")[0] in choice for name in names):
            raise PotstillError(
                f"{path}: no column {' or '.join(map(repr, choice))}; there are "
                f"{', '.join(map(repr, names)) or 'none'}. docs/teacher-files.md has the columns; "
                "`distill teacher check` tries a file."
            )


def at(value: Any, path: str) -> Any:
    """Return the value to which keys with dots between them lead, in a list the last item; None if there is none."""
    name, _, rest = path.partition(".")
    if not path:
        return value
    if isinstance(value, list) and name.isdecimal():
        return at(value[int(name)], rest) if int(name) < len(value) else None
    if isinstance(value, list):
        return first(at(item, path) for item in reversed(value))
    return at(value.get(name), rest) if isinstance(value, Mapping) else None


def first(values: Iterator[Any]) -> Any:
    """Return the first value that is not empty, or None."""
    return next((value for value in values if value not in (None, "", [], {})), None)


def identified(row: Mapping[str, Any], where: str) -> Given:
    """Return whose row it is: that of its text or pair of texts, or else of a content key."""
    if row.get("text") is None and (key := first(at(row, name) for name in IDS)) is not None:
        return Given(key=_content_key(key, where))
    pair = row.get("text_pair")
    texts = (row.get("text") or at(row, ASKED), *((pair,) if pair is not None else ()))
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise PotstillError(
                f"{where}: `text` is missing or not text. Fill it in, or give the `key` of its request."
            )
    return Given(texts)


def _content_key(key: Any, where: str) -> int:
    if isinstance(key, str) and _KEY.fullmatch(key):
        return int(key, 16)
    raise PotstillError(
        f"{where}: id {key!r:.40} is not a content key, so nothing says which text it answers. Make the batch with "
        "`distill teacher requests` (docs/teacher-files.md), or add the `text` that was asked about to each line."
    )


def reason_of(error: Any) -> str:
    """Return why a row has no value as one line that a terminal and a file can take."""
    while isinstance(error, Mapping):
        error = first(error.get(name) for name in ("message", "errorMessage", "error", "code")) or json.dumps(error)
    text = " ".join(printable(str(error)).split())[:LONGEST]
    return text.encode("utf-8", "replace").decode()


def parts_of(
    path: Path, rows: Iterator[tuple[int, Given]], value_of: Callable[[Given, str], np.ndarray]
) -> Iterator[GivenRows]:
    """Yield rows as arrays, a few thousand at a time.

    :param value_of: returns a row's value, float32 (width,).
    """

    def converted(number: int, row: Given) -> tuple[int, Given]:
        where = f"{path}: row {number}"
        if row.error is None:
            row = in_reply(row, where, lambda row: replace(row, value=value_of(row, where)))
        return number, row

    lines = starmap(converted, rows)
    while some := [*islice(lines, LINES)]:
        valued = [(number, row) for number, row in some if row.value is not None]
        yield GivenRows(
            np.array([number for number, _ in valued], np.int64),
            _keys([row for _, row in valued]),
            np.array([row.value for _, row in valued], np.float32),
            np.array([row.weight for _, row in valued], np.float64),
            len(some),
            Counter(row.error for _, row in some if row.error is not None),
        )


def in_reply(row: Given, where: str, convert: Callable[[Given], Given]) -> Given:
    """Return a converted row; what is wrong with a model's reply is why that row has no value."""
    try:
        return convert(row)
    except PotstillError as error:
        if not row.of_reply:
            raise
        reason = re.split(r"[;.] ", str(error).removeprefix(f"{where}: "))[0]
        return replace(row, kind=None, value=None, error=reason_of(reason))


def _keys(rows: Sequence[Given]) -> np.ndarray:
    keys = np.array([row.key or 0 for row in rows], np.uint64)
    written = [number for number, row in enumerate(rows) if row.texts is not None]
    if written:
        sides = zip(*(rows[number].texts for number in written), strict=True)
        keys[written] = content_keys([*sides])
    return keys
