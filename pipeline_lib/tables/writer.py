"""Flat rows as Parquet, JSON lines or CSV, written atomically as a stream."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds
from pyarrow import csv
from pyarrow.parquet import ParquetWriter

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import atomic_path

GROUP_ROWS, GROUP_BYTES = 1 << 16, 32 << 20
"""A Parquet row group is full at this many rows, or this many bytes in memory."""
DECIMALS = 6
"""Decimals of numbers in text."""


def write_flat(path: Path, tables: Iterable[pa.Table], names: list[str] | None) -> int:
    """Write tables with the same columns one after the other; return the number of rows.

    :param path: its suffix sets the format: .parquet, .jsonl or .csv.
    :param names: class names, for CSV, which has no lists.
    :raises DistilleryError: if the suffix is unknown, or there are no rows.
    """
    writers: dict[str, Callable[[Path, Iterator[pa.Table]], int]] = {
        ".parquet": _write_parquet,
        ".jsonl": _write_jsonl,
        ".csv": lambda target, parts: _write_csv(target, parts, names),
    }
    if path.suffix not in writers:
        raise DistilleryError(f"{path}: give a name that ends in {', '.join(writers)}.")
    rest = iter(tables)
    first = next(rest, None)
    if first is None:
        raise DistilleryError(
            f"{path}: not written, since no row was selected. Relax --rule or --label."
        )
    with atomic_path(path) as temporary:
        return writers[path.suffix](temporary, chain([first], rest))


def _write_parquet(path: Path, tables: Iterator[pa.Table]) -> int:
    rows, writer = 0, None
    try:
        for group in _groups(tables):
            if writer is None:
                # From a stored schema, pyarrow before 26 cannot read fixed lists with nulls.
                writer = ParquetWriter(path, group.schema, store_schema=False)
                writer.add_key_value_metadata(group.schema.metadata or {})
            writer.write_table(group)
            rows += len(group)
    finally:
        if writer is not None:
            writer.close()
    return rows


def _groups(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    group: list[pa.Table] = []
    for table in tables:
        group.append(table)
        if sum(map(len, group)) >= GROUP_ROWS or sum(part.nbytes for part in group) >= GROUP_BYTES:
            yield pa.concat_tables(group)
            group = []
    if group:
        yield pa.concat_tables(group)


def _write_jsonl(path: Path, tables: Iterator[pa.Table]) -> int:
    rows = 0
    with open(path, "w", encoding="utf-8") as file:
        for table in tables:
            columns = {name: _plain(table[name]) for name in table.column_names}
            for row in zip(*columns.values(), strict=True):
                record = dict(zip(columns, row, strict=True))
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            rows += len(table)
    return rows


def _write_csv(path: Path, tables: Iterator[pa.Table], names: list[str] | None) -> int:
    rows, writer = 0, None
    try:
        for table in tables:
            flat = _without_lists(table, names)
            writer = writer or csv.CSVWriter(path, flat.schema)
            writer.write_table(flat)
            rows += len(flat)
    finally:
        if writer is not None:
            writer.close()
    return rows


def _without_lists(table: pa.Table, names: list[str] | None) -> pa.Table:
    """Return a table with a column per class, and vectors as JSON."""
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name in table.column_names:
        column = table[name]
        if not kinds.is_fixed_size_list(column.type):
            columns[name] = column
        elif name.startswith("vector"):
            vectors = [None if vector is None else json.dumps(vector) for vector in _plain(column)]
            columns[name] = pa.array(vectors, pa.string())
        else:
            classes = names or [str(number) for number in range(column.type.list_size)]
            for number, label in enumerate(classes):
                columns[f"{name}.{label}"] = pc.list_element(column, number)
    return pa.table(columns)


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's values for JSON, rounded so that a float32 0.1 is not 0.10000000149."""
    kind = column.type
    if kinds.is_fixed_size_list(kind):
        values = column.combine_chunks()
        rows = np.round(np.array(values.flatten(), np.float64), DECIMALS)
        # Null rows have no values in the flattened array.
        each = iter(rows.reshape(-1, kind.list_size).tolist())
        return [next(each) if known else None for known in values.is_valid().to_pylist()]
    if kinds.is_floating(kind):
        return [None if v is None else round(v, DECIMALS) for v in column.to_pylist()]
    return column.to_pylist()
