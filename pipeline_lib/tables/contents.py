"""Reads files: all columns as text, whatever the format, with every row's number."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.tables.decoding import read_text
from pipeline_lib.tables.delimited import check_once, numbered, read_delimited
from pipeline_lib.tables.nested import Outer, outer_columns, with_deeper
from pipeline_lib.tables.rows import FIRST_ROW, read_rows

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".txt": "text",
}
"""Formats by file suffix; ``text`` means one text per line."""


@dataclass(frozen=True)
class Content:
    """The rows of one split.

    :ivar paths: its files; :ivar table: all columns, each as text, "" for missing values.
    :ivar starts: for each file, its first row in the table, and that row's number in the file.
    :ivar format: the format in which the pipeline reads it; None if it must be rewritten.
    :ivar columns: the column names, for a file without a header line.
    :ivar class_names: by column, the names of 0, 1, 2, … in its metadata.
    :ivar deeper: columns nested in the file's rows, where the pipeline does not look.
    :ivar others: fields that cannot be columns here, with their types: lists, times, images.
    """

    paths: list[Path]
    table: pa.Table
    starts: list[tuple[int, int]]
    format: str | None
    columns: list[str] | None = None
    class_names: dict[str, list[str]] = field(default_factory=dict)
    deeper: frozenset[str] = frozenset()
    others: dict[str, str] = field(default_factory=dict)

    @property
    def is_nameless(self) -> bool:
        """Whether neither the file nor the user named the columns."""
        return self.columns is not None and self.columns == numbered(len(self.columns))

    def format_for(self, columns: Sequence[str]) -> str | None:
        """Return the format in which the pipeline reads these columns, or None."""
        return None if self.deeper & {*columns} else self.format

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self.table.column_names

    def values(self, column: str) -> list[str]:
        """Return a column's values, stripped."""
        return [value.strip() for value in self.table[column].to_pylist()]

    def place(self, row: int) -> tuple[Path, int]:
        """Return the file of a row of the table, and the row's number as an editor shows it."""
        number = max(n for n, (start, _) in enumerate(self.starts) if start <= row)
        start, first = self.starts[number]
        return self.paths[number], first + row - start


@dataclass(frozen=True)
class _File:
    table: pa.Table
    first: int
    format: str | None
    columns: list[str] | None = None
    class_names: dict[str, list[str]] = field(default_factory=dict)
    deeper: frozenset[str] = frozenset()
    others: dict[str, str] = field(default_factory=dict)


def read_content(
    paths: Sequence[Path], columns: list[str] | None = None, short_rows: bool = False
) -> Content:
    """Read a split's files, one after the other.

    :param columns: names of the columns, if there is no header line.
    :param short_rows: whether rows of tsv files may end early; their other columns are empty.
    :raises DistilleryError: naming file and row, if one cannot be read.
    """
    files = [_read(path, columns, short_rows) for path in paths]
    starts, rows = [], 0
    for file in files:
        starts.append((rows, file.first))
        rows += file.table.num_rows
    first = files[0]
    names = [n for n in first.table.column_names if all(n in f.table.column_names for f in files)]
    table = pa.concat_tables([file.table.select(names) for file in files])
    same = len(files) == 1
    return Content(
        *([*paths], table, starts, first.format if same else None, first.columns),
        *(first.class_names, first.deeper, first.others),
    )


def _read(path: Path, columns: list[str] | None, short_rows: bool) -> _File:
    format = FORMATS[path.suffix.lower()]
    if format in ("csv", "tsv"):
        return _File(*read_delimited(path, format, columns, short_rows))
    if format == "jsonl":
        return _read_json(path)
    if format == "parquet":
        return _read_parquet(path)
    if format == "arrow":
        return _read_arrow(path)
    lines = [line for line in read_text(path).split("\n") if line.strip()]
    if not lines:
        raise DistilleryError(f"{path}: no texts. Write one per line.")
    return _File(pa.table({"text": pa.array(lines, pa.large_string())}), 1, None)


def _read_json(path: Path) -> _File:
    """Read JSON lines: keys with plain values in all rows, and nested ones."""
    text = read_text(path)
    if text.lstrip().startswith("["):
        raise DistilleryError(
            f"{path}: a JSON array. Write one object per line: jq -c '.[]' {quote(str(path))} > "
            f"{quote(str(path.with_name(f'{path.stem}_lines.jsonl')))}"
        )
    rows, plain = [], {}
    for line in text.rstrip().split("\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue  # the pipeline's own reader reports it
        rows.append(row if isinstance(row, dict) else {})
        for name, value in rows[-1].items():
            plain[name] = plain.get(name, True) and not isinstance(value, list | dict)
    names = [name for name, is_plain in plain.items() if is_plain]
    table = read_rows(path, "jsonl", None, names, names)
    deep = (
        (name, "list or object", [row.get(name) for row in rows])
        for name, is_plain in plain.items()
        if not is_plain
    )
    return _file(path, table, "jsonl", deep)


def _read_parquet(path: Path) -> _File:
    schema = _schema(path)
    check_once(path, schema.names)
    names = [field.name for field in schema if _is_plain(field.type)]
    table = read_rows(path, "parquet", None, names, names)
    deep = pq.read_table(path, columns=[n for n in schema.names if n not in names])
    return _file(path, table, "parquet", outer_columns(deep), _class_names(schema))


def _file(
    path: Path,
    table: pa.Table,
    format: str | None,
    columns: Iterable[Outer],
    class_names: dict[str, list[str]] | None = None,
) -> _File:
    """Return plain columns, with what is nested in others."""
    first = int((table.schema.metadata or {}).get(FIRST_ROW, b"1"))
    table, deeper, others = with_deeper(path, table, first, columns)
    named = class_names or {}
    return _File(table, first, format, None, named, frozenset(deeper), others)


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise DistilleryError(
            f"{path}: not a readable Parquet file ({error}). Write the file again."
        ) from error


def _is_plain(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    return any(kind(type_) for kind in (*kinds, pa.types.is_floating, pa.types.is_boolean))


def _class_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the class names of the columns that ``datasets`` wrote as a ClassLabel."""
    try:
        metadata = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    except ValueError:
        return {}
    features: dict[str, Any] = metadata.get("info", {}).get("features", {})
    return {
        name: feature["names"]
        for name, feature in features.items()
        if isinstance(feature, dict) and isinstance(feature.get("names"), list)
    }


def _read_arrow(path: Path) -> _File:
    try:
        with pa.memory_map(str(path)) as source:
            try:
                read = pa.ipc.open_stream(source).read_all()
            except pa.ArrowInvalid:
                source.seek(0)
                read = pa.ipc.open_file(source).read_all()
    except (pa.ArrowException, OSError) as error:
        raise DistilleryError(f"{path}: not a readable Arrow file ({error}).") from error
    names = [field.name for field in read.schema if _is_plain(field.type)]
    values = {name: _as_texts(read[name]) for name in names}
    deep = outer_columns(read.select([n for n in read.schema.names if n not in names]))
    return _file(path, pa.table(values), None, deep, _class_names(read.schema))


def _as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as text; nulls and NaN are missing."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    return column.cast(pa.large_string()).fill_null("")
