"""Values nested in a row: objects within objects, lists of one value.

``{"data": {"text": "so"}, "label": ["good"]}`` has the columns ``data.text`` and ``label``.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.unicode import has_surrogates

_DEEPEST = 8
_MAX_KEYS = 100
"""An object with more keys, over all rows, is not a record but a mapping, such as of counts."""


Outer = tuple[str, str, Sequence[Any] | None]
"""A column's name, its type, and the values of all rows: plain ones, objects, lists or None.
Instead of the values, None if they contain nothing plain, as with vectors."""


def outer_columns(table: pa.Table) -> Iterator[Outer]:
    """Yield columns that are not plain, with the values of those that may contain plain ones.

    Decimals become floating-point numbers.
    """
    for name in table.column_names:
        column, looks = table[name], pa.types.is_struct(table[name].type)
        if pa.types.is_decimal(column.type):
            column, looks = column.cast(pa.float64()), True
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            looks = (pc.max(pc.list_value_length(column)).as_py() or 0) <= 1
        yield name, str(column.type), column.to_pylist() if looks else None


def with_deeper(
    path: Path, table: pa.Table, first: int, columns: Iterable[Outer]
) -> tuple[pa.Table, list[str], dict[str, str]]:
    """Return a table with the nested columns added, their names, and the types of all others.

    :param table: plain columns of texts; :param first: the number of its first row in the file.
    :raises DistilleryError: for half a surrogate pair, or if there is no plain column at all.
    """
    arrays: dict[str, Any] = {name: table[name] for name in table.column_names}
    deeper: list[str] = []
    others: dict[str, str] = {}
    for outer, type_, values in columns:
        before = len(deeper)
        for name, cells in _columns(outer, values, 0) if values is not None else ():
            if name not in arrays:
                arrays[name] = pa.array(_texts(cells, path, name, first), pa.large_string())
                deeper.append(name)
        others |= {outer: type_} if len(deeper) == before else {}
    if not arrays:
        only = f", only {with_types(others)}" if others else ""
        raise DistilleryError(
            f"{path}: no columns of plain values{only}. Write texts and labels, one of each per "
            "row."
        )
    return pa.table(arrays), deeper, others


def with_types(columns: Mapping[str, str]) -> str:
    """List columns with their types."""
    return ", ".join(f"{name} ({type_})" for name, type_ in columns.items())


def values_at(value: Any, path: str) -> Iterator[Any]:
    """Yield the value in a row to which a column's path leads, if there is one.

    Under a null there is null.
    """
    if isinstance(value, list) and _is_one(value):
        value = value[0] if value else None
    if value is None or not path:
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if f"{path}.".startswith(f"{key}."):
                yield from values_at(inner, path[len(key) + 1 :])


def _columns(name: str, values: Sequence[Any], depth: int) -> Iterator[tuple[str, list[Any]]]:
    present = [value for value in values if value is not None]
    if all(isinstance(value, str | int | float) for value in present):
        yield name, [*values]
    elif depth == _DEEPEST:
        return
    elif all(isinstance(value, list) and _is_one(value) for value in present):
        yield from _columns(name, [value[0] if value else None for value in values], depth + 1)
    elif all(isinstance(value, dict) for value in present):
        keys = dict.fromkeys(key for value in present for key in value)
        for key in keys if len(keys) <= _MAX_KEYS else ():
            inner = [None if value is None else value.get(key) for value in values]
            yield from _columns(f"{name}.{key}", inner, depth + 1)


def _is_one(values: list[Any]) -> bool:
    """Whether a list has at most one value; a single number may be a vector."""
    return len(values) <= 1 and all(isinstance(value, str | dict) for value in values)


def _texts(values: Sequence[Any], path: Path, name: str, first: int) -> list[str]:
    return [_text(value, path, row, name) for row, value in enumerate(values, first)]


def _text(value: Any, path: Path, row: int, name: str) -> str:
    """Return a plain value as :func:`~pipeline_lib.tables.rows.read_rows` does; 1.0 is ``1``."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str) and has_surrogates(value):
        raise DistilleryError(
            f"{path}: row {row}, column {name!r} contains half a surrogate pair, which is not a "
            "character. Write the text as UTF-8, or escape both halves."
        )
    return str(value)
