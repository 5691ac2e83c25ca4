"""Reading a catalogue's sentences from files and shard sets, a batch at a time."""

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import unreadable
from pipeline_lib.base.unicode import as_utf8
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.tables.lines import read_lines

BATCH = 4096
FORMATS = ("lines", "jsonl", "csv", "tsv", "parquet", "shards")
_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv"}
_SUFFIXES |= {".parquet": "parquet"}


@dataclass(frozen=True)
class Rows:
    """Some sentences, and their ids if they have any."""

    texts: list[str]
    ids: list[str] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, part: slice) -> "Rows":
        return Rows(self.texts[part], None if self.ids is None else self.ids[part])

    def filled(self) -> "Rows":
        """Return the rows that have a text."""
        return self.chosen(np.fromiter((bool(text.strip()) for text in self.texts), bool))

    def chosen(self, wanted: np.ndarray) -> "Rows":
        """Return the rows where ``wanted``, bool (rows,), is true."""
        numbers = np.flatnonzero(wanted).tolist()
        ids = None if self.ids is None else [self.ids[number] for number in numbers]
        return Rows([self.texts[number] for number in numbers], ids)


def read_rows(
    source: Path | None, form: str | None = None, text: str = "text", ids: str | None = None
) -> Iterator[Rows]:
    """Yield the sentences of a source in batches, in its order; memory does not grow with it.

    :param source: a file, or the folder of a shard set; None: standard input.
    :param form: one of :data:`FORMATS`; None: from the file's suffix, else a sentence per line.
    :param text: the column, or JSON key, of the sentences; not used for lines.
    :param ids: that of their ids; None: there are none.
    :raises DistilleryError: if it cannot be read, naming the row and the remedy.
    """
    form = form or _form(source)
    if form in ("parquet", "shards", "csv") and source is None:
        raise DistilleryError(f"standard input: cannot be read as {form}. Give a file.")
    if form == "lines" and ids is not None:
        raise DistilleryError(
            f"{source or 'standard input'}: lines have no ids. Leave `--id` out, or give JSON "
            "lines, CSV, TSV or Parquet."
        )
    readers = {"lines": _lines, "jsonl": _jsonl, "csv": _csv, "tsv": _tsv}
    readers |= {"parquet": _parquet, "shards": _shards}
    if form in ("parquet", "shards"):
        yield from readers[form](source, text, ids)
        return
    records = readers[form](source, [text] if ids is None else [text, ids])
    while batch := list(islice(records, BATCH)):
        columns = [list(column) for column in zip(*batch, strict=True)]
        yield Rows(*columns)


def _form(source: Path | None) -> str:
    if source is None:
        return "lines"
    return "shards" if source.is_dir() else _SUFFIXES.get(source.suffix.lower(), "lines")


def _lines(source: Path | None, _: list[str]) -> Iterator[tuple[str, ...]]:
    return ((line,) for line in read_lines(source))


def _jsonl(source: Path | None, names: list[str]) -> Iterator[tuple[str, ...]]:
    for number, line in enumerate(read_lines(source), 1):
        if not line.strip():
            continue
        where = f"{source or 'standard input'}: row {number}"
        try:
            row = json.loads(line)
        # Numbers with thousands of digits are ValueErrors, too.
        except (ValueError, RecursionError) as error:
            raise DistilleryError(
                f"{where} is not valid JSON ({error}). Write one object per line."
            ) from error
        if not isinstance(row, dict):
            raise DistilleryError(f"{where} is not a JSON object. Write one per line.")
        for name in names:
            if name not in row:
                raise DistilleryError(
                    f"{where} has no key {name!r}, only {', '.join(row) or 'none'}. Name the keys "
                    "by `--text` and `--id`."
                )
        yield tuple(_as_text(row[name], where, name) for name in names)


def _csv(source: Path, names: list[str]) -> Iterator[tuple[str, ...]]:
    try:
        with open(source, encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
            yield from _delimited(csv.reader(stream, strict=True), source, names)
    except OSError as error:
        raise unreadable(source, error) from error
    except csv.Error as error:
        raise DistilleryError(
            f"{source}: not valid CSV ({error}). Quote texts with commas or quotes, and double the "
            "quotes inside."
        ) from error


def _tsv(source: Path | None, names: list[str]) -> Iterator[tuple[str, ...]]:
    records = (line.split("\t") for line in read_lines(source))
    return _delimited(records, source, names)


def _delimited(
    records: Iterable[list[str]], source: Path | None, names: list[str]
) -> Iterator[tuple[str, ...]]:
    """Yield the named columns of records, the first of which is the header."""
    name = source or "standard input"
    records = iter(records)
    header = next(records, [])
    indices = [_place(name, header, column) for column in names]
    for number, record in enumerate(records, 2):
        if not any(record):
            continue
        if len(record) != len(header):
            raise DistilleryError(
                f"{name}: row {number} has {len(record)} columns, not {len(header)}. Correct the "
                "row."
            )
        yield tuple(as_utf8(record[index], f"{name}: row {number}") for index in indices)


def _place(source: Any, header: list[str], name: str) -> int:
    if header.count(name) != 1:
        raise DistilleryError(
            f"{source}: {header.count(name)} columns are called {name!r}; there are "
            f"{', '.join(map(repr, header)) or 'none'}. Name the columns by `--text` and `--id`."
        )
    return header.index(name)


def _parquet(source: Path, text: str, ids: str | None) -> Iterator[Rows]:
    import pyarrow.parquet as pq

    names = [text] if ids is None else [text, ids]
    try:
        with pq.ParquetFile(source) as file:
            for name in names:
                _place(source, file.schema_arrow.names, name)
            first = 1
            for batch in file.iter_batches(BATCH, columns=names):
                yield _of_table(pa.table(batch), source, first, text, ids)
                first += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise DistilleryError(
            f"{source}: not a readable Parquet file ({error}). Write it again."
        ) from error


def _shards(source: Path, text: str, ids: str | None) -> Iterator[Rows]:
    first = 1
    for table in ShardSet.open(source).tables():
        for name in (text, ids):
            if name is not None:
                _place(source, table.column_names, name)
        for start in range(0, table.num_rows, BATCH):
            yield _of_table(table.slice(start, BATCH), source, first + start, text, ids)
        first += table.num_rows


def _of_table(rows: pa.Table, source: Path, first: int, text: str, ids: str | None) -> Rows:
    def column(name: str) -> list[str]:
        values = enumerate(rows[name].to_pylist(), first)
        return [_as_text(value, f"{source}: row {number}", name) for number, value in values]

    return Rows(column(text), None if ids is None else column(ids))


def _as_text(value: Any, where: str, name: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise DistilleryError(
            f"{where}, column {name!r} holds a {type(value).__name__}, not a text or a whole "
            "number. Correct it."
        )
    return as_utf8(value, where)


def in_segments(batches: Iterable[Rows], size: int) -> Iterator[Rows]:
    """Yield the rows of ``batches`` in segments of ``size`` rows; the last one may have fewer."""
    texts: list[str] = []
    ids: list[str] = []
    for batch in batches:
        texts += batch.texts
        ids += batch.ids or []
        while len(texts) >= size:
            yield Rows(texts[:size], ids[:size] or None)
            texts, ids = texts[size:], ids[size:]
    if texts:
        yield Rows(texts, ids or None)
