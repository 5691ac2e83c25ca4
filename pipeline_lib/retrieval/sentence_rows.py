"""Sentences with their ids, as an index and its queries are read, a batch at a time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.shards.shard_sets import MANIFEST, ShardSet
from pipeline_lib.tables.faults import no_column
from pipeline_lib.tables.reader import (
    BATCH_ROWS,
    LINES_COLUMN,
    ReadOptions,
    RowBatch,
    input_format,
    read_batches,
    top_of,
)

_REMEDY = "Name the columns by `--text` and `--id`."


@dataclass(frozen=True)
class Rows:
    """Some sentences, and their ids if they have any.

    :ivar faults: what is wrong with rows that could not be read, by their position here; their text is empty.
    """

    texts: list[str]
    ids: list[str] | None = None
    faults: Mapping[int, str] = field(default_factory=dict)

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
    source: Path | None,
    text: str = "text",
    ids: str | None = None,
    options: ReadOptions = ReadOptions(),  # noqa: B008
) -> Iterator[Rows]:
    """Yield the sentences of a source in batches, in its order; memory does not grow with it.

    :param source: a file, or a folder: a shard set, or files of a known format; None: standard input.
    :param text: the column, or JSON key, of the sentences; not used for lines.
    :param ids: that of their ids; None: there are none.
    """
    names = [text] if ids is None else [text, ids]
    if source is not None and (source / MANIFEST).is_file():
        batches = _shards(source, names)
    else:
        if source is None or not source.is_dir():
            options = replace(options, format=input_format(source, options))
        if options.format == "lines":
            if ids is not None:
                raise PotstillError(
                    f"{source or 'standard input'}: lines have no ids. Leave `--id` out, or give "
                    "JSON lines, CSV, TSV or Parquet."
                )
            names = [LINES_COLUMN]
        batches = read_batches(source, names, (), replace(options, remedy=_REMEDY))
    for batch in batches:
        texts = batch.texts(names[0])
        yield Rows(texts, None if ids is None else _ids(batch, ids), batch.faults or {})


def _ids(batch: RowBatch, name: str) -> list[str]:
    ids = batch.texts(name)
    if "" in ids:
        raise PotstillError(f"{batch.where(ids.index(''))}: no {name!r}. Give every row an id, or leave `--id` out.")
    return ids


def _shards(source: Path, names: list[str]) -> Iterator[RowBatch]:
    first = 1
    for table in ShardSet.open(source).tables():
        for name in names:
            if top_of(name, table.column_names) is None:
                raise no_column(str(source), name, table.column_names, _REMEDY)
        for start in range(0, table.num_rows, BATCH_ROWS):
            part = table.slice(start, BATCH_ROWS)
            numbers = range(first + start, first + start + part.num_rows)
            yield RowBatch(str(source), numbers, {n: part[n].to_pylist() for n in names})
        first += table.num_rows


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
