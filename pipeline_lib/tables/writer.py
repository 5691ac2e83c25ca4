"""The writer of tables for people: Parquet, Arrow, JSON lines or CSV, as a stream, atomically."""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.text import escaped_json

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS, GROUP_BYTES = 1 << 16, 32 << 20
"""A Parquet row group is full at this many rows, or this many bytes in memory."""
_FORMULA = r"^([=@\t\r]|[+-]([^\d.]|$))"
DECIMALS = 6
"""Decimals of numbers in JSON."""
Record = dict[str, Any]
Write = Callable[["pa.Table", Iterable[Record] | None], None]
"""Appends a table.  Its rows as JSON objects may be given, where they are not those of the table:
then JSON lines have them instead."""


@contextmanager
def open_writer(path: Path, names: list[str] | None = None, raw_cells: bool = False) -> Iterator[Write]:
    """Open a file to write tables with the same columns to, one after the other.

    It appears once it is complete.

    :param path: its suffix sets the format.
    :param names: class names, for CSV, which has no lists.
    :param raw_cells: whether texts stay as they are in CSV that a spreadsheet would compute; see :func:`_harmless`.
    """
    require_ending(path)
    options = _Options(names, raw_cells)
    with atomic_path(path) as temporary, _WRITERS[path.suffix](temporary, options) as write:
        yield write


def require_ending(path: Path, endings: Iterable[str] | None = None) -> None:
    """Check that a file's suffix is one of those in which tables are written."""
    allowed = [*(endings or _WRITERS)]
    if path.suffix not in allowed:
        raise PotstillError(f"{path}: give a name that ends in {', '.join(allowed)}.")


def require_other(path: Path | None, source: Path | None) -> None:
    """Check that a file to write is not the one that is read."""
    if path and source and path.exists() and source.exists() and path.samefile(source):
        raise PotstillError(f"{path}: the file that is read. Give another name to write to.")


def write_tables(path: Path, tables: Iterable["pa.Table"], names: list[str] | None, raw_cells: bool = False) -> int:
    """Write tables one after the other; return the number of rows; see :func:`open_writer`."""
    rows = 0
    with open_writer(path, names=names, raw_cells=raw_cells) as write:
        for table in tables:
            write(table, None)
            rows += len(table)
        if not rows:
            raise PotstillError(f"{path}: not written, since no row was selected. Relax --rule or --label.")
    return rows


@dataclass(frozen=True)
class _Options:
    names: list[str] | None
    raw_cells: bool


@contextmanager
def _open_jsonl(path: Path, _: object) -> Iterator[Write]:
    with open(path, "w", encoding="utf-8", newline="\n") as sink:

        def write(table: "pa.Table", records: Iterable[Record] | None = None) -> None:
            for record in _records(table) if records is None else records:
                sink.write(json_text(record) + "\n")

        yield write


@contextmanager
def _at_first_table(
    open_file: Callable[["pa.Schema"], Any], changed: Callable[["pa.Table"], "pa.Table"] = lambda table: table
) -> Iterator[Write]:
    """Open a file with the schema of the first table; each is changed before it is written."""
    with ExitStack() as stack:
        writers: list[Any] = []

        def write(table: "pa.Table", _: Iterable[Record] | None = None) -> None:
            table = changed(table)
            if not writers:
                writers.append(stack.enter_context(open_file(table.schema)))
            writers[0].write_table(table)

        yield write


def _open_csv(path: Path, options: _Options) -> AbstractContextManager[Write]:
    from pyarrow import csv

    def flat(table: "pa.Table") -> "pa.Table":
        table = _without_lists(table, options.names)
        return table if options.raw_cells else _harmless(table)

    return _at_first_table(partial(csv.CSVWriter, path), flat)


def _open_arrow(path: Path, _: object) -> AbstractContextManager[Write]:
    import pyarrow as pa

    return _at_first_table(partial(pa.ipc.new_file, str(path)))


@contextmanager
def _open_parquet(path: Path, _: object) -> Iterator[Write]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    with ExitStack() as stack:
        writers: list[ParquetWriter] = []
        group: list[pa.Table] = []

        def flush() -> None:
            table = pa.concat_tables(group)
            group.clear()
            if not writers:
                # From a stored schema, pyarrow before 26 cannot read fixed lists with nulls.
                writer = ParquetWriter(path, table.schema, store_schema=False)
                writers.append(stack.enter_context(writer))
                writer.add_key_value_metadata(table.schema.metadata or {})
            writers[0].write_table(table)

        def write(table: pa.Table, _: Iterable[Record] | None = None) -> None:
            group.append(table)
            size = sum(table.nbytes for table in group)
            if sum(map(len, group)) >= GROUP_ROWS or size >= GROUP_BYTES:
                flush()

        yield write
        if group:
            flush()


_WRITERS: dict[str, Callable[[Path, Any], AbstractContextManager[Write]]] = {
    ".parquet": _open_parquet,
    ".arrow": _open_arrow,
    ".jsonl": _open_jsonl,
    ".csv": _open_csv,
}


def _records(table: "pa.Table") -> Iterator[Record]:
    columns = {name: _plain(table[name]) for name in table.column_names}
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def _without_lists(table: "pa.Table", names: list[str] | None) -> "pa.Table":
    """Return a table with a column per class, and vectors as JSON."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name in table.column_names:
        column = table[name]
        if not pa.types.is_fixed_size_list(column.type):
            columns[name] = column
        elif name.startswith("vector"):
            vectors = [None if vector is None else json.dumps(vector) for vector in _plain(column)]
            columns[name] = pa.array(vectors, pa.string())
        else:
            classes = names or [str(number) for number in range(column.type.list_size)]
            for number, label in enumerate(classes):
                columns[f"{name}.{label}"] = pc.list_element(column, number)
    return pa.table(columns)


def _harmless(table: "pa.Table") -> "pa.Table":
    """Return a table whose texts no spreadsheet takes for a formula.

    An apostrophe is put before texts that begin with ``=``, ``@``, a tab or a carriage return, or
    with a sign and no number, as OWASP recommends against CSV injection.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            is_formula = pc.fill_null(pc.match_substring_regex(column, _FORMULA), False)
            if pc.any(is_formula).as_py():
                marked = pc.binary_join_element_wise("'", column, "")
                column = pc.if_else(is_formula, marked, column)
        columns[name] = column
    return pa.table(columns)


def _plain(column: "pa.ChunkedArray") -> list[Any]:
    """Return a column's values for JSON, rounded so that a float32 0.1 is not 0.10000000149."""
    import pyarrow.types as kinds

    kind = column.type
    if kinds.is_fixed_size_list(kind):
        values = column.combine_chunks()
        rows = np.round(np.array(values.flatten(), np.float64), DECIMALS)
        # Null rows have no values in the flattened array.
        each = iter(rows.reshape(-1, kind.list_size).tolist())
        return [next(each) if is_known else None for is_known in values.is_valid().to_pylist()]
    if kinds.is_floating(kind):
        return [None if v is None else round(v, DECIMALS) for v in column.to_pylist()]
    return column.to_pylist()


def json_text(value: Any) -> str:
    """Return a value as JSON; NaN and infinities, which JSON does not have, are null."""
    return escaped_json(json.dumps(_finite(value), ensure_ascii=False, default=str))


def cell_text(value: Any) -> str | None:
    """Return a value as the text of a cell; what is not text becomes JSON, and NaN is missing."""
    value = _finite(value)
    return value if value is None or isinstance(value, str) else json_text(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return value
