"""Reading the sentences of people's files, and of shard sets, for ``index``, ``search`` and ``predict``."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.retrieval.sentence_rows import Rows
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
        yield Rows(batch.texts(names[0]), None if ids is None else _ids(batch, ids), batch.faults or {})


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
        for rows in table.select(names).to_batches(BATCH_ROWS):
            yield RowBatch(str(source), range(first, first + rows.num_rows), rows.to_pydict())
            first += rows.num_rows
