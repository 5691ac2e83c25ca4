"""Values of a table: as text, the form in which labels are listed in params.yaml, and nested in a row.

``{"data": {"text": "so"}, "label": ["good"]}`` has the columns ``data.text`` and ``label``.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import has_surrogates

LISTS = "lists of names"
"""The type of a column of lists of texts or whole numbers, of any length."""
_DEEPEST = 8
_MAX_KEYS = 100
"""An object with more keys, over all rows, is not a record but a mapping, such as of counts."""


def is_plain(value: Any) -> bool:
    """Whether a value is missing, a text, a number or a truth value: no list, no object."""
    return value is None or isinstance(value, str | int | float | bytes | Decimal)


def is_missing(value: Any) -> bool:
    """Whether a value is missing: null, or NaN, which many tools write for it."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def as_text(value: Any, column: str, where: str) -> str:
    """Return a value's plain form: 1 and 1.0 are both ``1``, 2.5 is ``2.5``, null is empty.

    :param column: its column; :param where: file and row, for messages.
    """
    if isinstance(value, str):
        if not value.isascii() and has_surrogates(value):
            raise PotstillError(
                f"{where}, column {column!r} holds half a surrogate pair, which is no character. "
                "Write the text as UTF-8, or escape both halves."
            )
        return value
    if isinstance(value, list) and len(value) <= 1 and all(isinstance(v, str) for v in value):
        # Data sets have lists of labels, of which a row may have just one.
        return as_text(value[0] if value else None, column, where)
    if is_missing(value):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | Decimal):
        # Many tools turn integer columns with gaps into floating-point numbers.
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return _decoded(value, column, where)
    raise PotstillError(
        f"{where}, column {column!r} holds a {type(value).__name__}, not a text or a number. Write plain values."
    )


def as_list_text(value: Any, column: str, where: str) -> str:
    """Return a list as JSON, and any other value as :func:`as_text` does."""
    if not isinstance(value, list):
        return as_text(value, column, where)
    entries = [as_text(entry, column, where) for entry in value]
    return json.dumps(entries, ensure_ascii=False)


def _decoded(value: bytes, column: str, where: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise PotstillError(
            f"{where}, column {column!r} holds bytes that are not UTF-8. Write the text as a string."
        ) from error


@dataclass
class Paths:
    """Values nested in rows, and which of the paths to them have led somewhere so far, be it to null."""

    found: set[str] = field(default_factory=set)

    def value_at(self, row: Any, path: str) -> Any:
        """Return the value in a row, or in one of its values, to which a path leads; null if none."""
        values = iter([row[path]]) if isinstance(row, dict) and path in row else _values_at(row, path)
        for value in values:
            self.found.add(path)
            return value
        return None


def with_types(columns: Mapping[str, str]) -> str:
    """List columns with their types."""
    return ", ".join(f"{name} ({type_})" for name, type_ in columns.items())


def plain_columns(name: str, values: Sequence[Any], depth: int = 0) -> Iterator[str]:
    """Yield the paths of plain values in a column: its name, or those of keys within.

    :param values: of all rows.
    """
    present = [value for value in values if value is not None]
    if all(map(is_plain, present)):
        yield name
    elif depth == _DEEPEST:
        return
    elif all(isinstance(value, list) and is_one(value) for value in present):
        inner = [value[0] if value else None for value in present]
        yield from plain_columns(name, inner, depth + 1)
    elif all(isinstance(value, dict) for value in present):
        keys = dict.fromkeys(key for value in present for key in value)
        for key in keys if len(keys) <= _MAX_KEYS else ():
            yield from plain_columns(f"{name}.{key}", [v.get(key) for v in present], depth + 1)


def types_within(name: str, values: Sequence[Any]) -> dict[str, str | None]:
    """Return the type of a column: None for each path of plain values in it, if there are any.

    :param values: of all rows.
    """
    if inner := [*plain_columns(name, values)]:
        return dict.fromkeys(inner)
    present = [value for value in values if value is not None]
    entries = {type(entry) for value in present if isinstance(value, list) for entry in value}
    are_names = entries in ({str}, {int}) and all(isinstance(value, list) for value in present)
    return {name: LISTS if are_names else "list or object"}


def is_one(values: Sequence[Any]) -> bool:
    """Whether a list has at most one value; a single number may be a vector."""
    return len(values) <= 1 and all(isinstance(value, str | dict) for value in values)


def _values_at(value: Any, path: str) -> Iterator[Any]:
    """Yield the value to which a path leads, if there is one; under a null there is null."""
    if isinstance(value, list) and is_one(value):
        value = value[0] if value else None
    if value is None or not path:
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if f"{path}.".startswith(f"{key}."):
                yield from _values_at(inner, path[len(key) + 1 :])
