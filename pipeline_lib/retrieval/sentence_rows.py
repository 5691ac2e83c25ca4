"""Sentences with their ids, as an index and its queries are read, a batch at a time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_json
from pipeline_lib.base.hashing import SeenKeys, string_keys
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

BLOCK_ROWS = 8192
"""Rows of a block on average; at most four times as many."""
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

    def __getitem__(self, rows: slice) -> "Rows":
        return Rows(self.texts[rows], None if self.ids is None else self.ids[rows])

    @property
    def digest(self) -> str:
        """SHA-256 of the texts and ids."""
        return sha256_json([self.texts, self.ids])

    def table(self) -> pa.Table:
        """Return the columns text, and id if there are ids."""
        columns = {"text": self.texts} if self.ids is None else {"text": self.texts, "id": self.ids}
        return pa.table({name: pa.array(values, pa.large_string()) for name, values in columns.items()})

    def filled(self) -> "Rows":
        """Return the rows that have a text."""
        return self.chosen(np.fromiter((bool(text.strip()) for text in self.texts), bool))

    def chosen(self, mask: np.ndarray) -> "Rows":
        """Return the rows where ``mask``, bool (rows,), is true."""
        numbers = np.flatnonzero(mask).tolist()
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
        for start in range(0, table.num_rows, BATCH_ROWS):
            rows = table.slice(start, BATCH_ROWS)
            numbers = range(first + start, first + start + rows.num_rows)
            yield RowBatch(str(source), numbers, {name: rows[name].to_pylist() for name in names})
        first += table.num_rows


class DistinctRows:
    """The rows that have a text, each once; it holds 16 to 40 bytes per row with ids, half of that without.

    :ivar left_out: how many rows were empty, or equal to an earlier one.
    """

    def __init__(self) -> None:
        self._ids, self._rows = SeenKeys(), SeenKeys()
        self.left_out = {"empty": 0, "repeated": 0}

    def blocks(self, batches: Iterable[Rows], size: int = BLOCK_ROWS) -> Iterator[Rows]:
        """Yield the rows in blocks, each of which ends behind a row whose key says so.

        So a row that is added, removed or changed changes the block that it is in, and no other.

        :param size: how many rows a block has on average; at most four times as many.
        """
        texts: list[str] = []
        ids: list[str] = []
        for batch in batches:
            rows, is_last = self._take(batch, size)
            ids += rows.ids or []
            start = 0
            for end in range(1, len(rows) + 1):
                if is_last[end - 1] or len(texts) + end - start == 4 * size:
                    texts += rows.texts[start:end]
                    yield Rows(texts, ids[: len(texts)] or None)
                    ids, texts, start = ids[len(texts) :], [], end
            texts += rows.texts[start:]
        if texts:
            yield Rows(texts, ids or None)

    def _take(self, batch: Rows, size: int) -> tuple[Rows, list[bool]]:
        """Return the new rows of a batch, and which of them end a block."""
        rows = batch.filled()
        if rows.ids is None:
            keys = string_keys(rows.texts)
            new = self._rows.add(keys)
        else:
            keys = string_keys([f"{row_id}\x1f{text}" for row_id, text in zip(rows.ids, rows.texts, strict=True)])
            new, unseen = self._rows.add(keys), self._ids.add(string_keys(rows.ids))
            if (changed := np.flatnonzero(new & ~unseen)).size:
                raise PotstillError(
                    f"id {rows.ids[changed[0]]!r}: has two texts. Give each text an id of its own, or leave `--id` out."
                )
        self.left_out["empty"] += len(batch) - len(rows)
        self.left_out["repeated"] += len(rows) - int(new.sum())
        return rows.chosen(new), (keys[new] % np.uint64(size) == 0).tolist()
