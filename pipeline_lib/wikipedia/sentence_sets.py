"""Two shard sets of sentences: a training set, and a validation set of other articles.

Chunks of articles are split by many processes; what becomes of their sentences is decided here, in
the input's order.  Each set takes its first sentences, and a sentence that equals an earlier one of
either set is dropped, wanted or not.  So both sets are pure functions of the input: a greater
number of sentences only adds shards, and leaves the validation set as it is.
"""

import hashlib
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import clear_folder
from pipeline_lib.base.hashing import salt, string_keys, uniform
from pipeline_lib.engine.local import stream_jobs
from pipeline_lib.params import Wikipedia
from pipeline_lib.storage.seen_keys import SeenKeys
from pipeline_lib.storage.shards import Manifest, Shard, schema_of, write_manifest, write_shard
from pipeline_lib.storage.store import Store
from pipeline_lib.wikipedia.chunks import read_chunks
from pipeline_lib.wikipedia.splitting import (
    SCHEMA,
    SentencePass,
    SplitChunk,
    counts_of,
    split_chunk,
)

SETS = ("train", "validation")


class SentenceSet:
    """The first so many sentences of a stream, written as shards of a fixed number of rows.

    :param folder: the set's folder.
    :param limit: the rows at most.
    :param shard_rows: rows per shard; the last one may have fewer.
    """

    def __init__(self, folder: Path, limit: int, shard_rows: int) -> None:
        self.folder, self.limit, self.shard_rows = folder, limit, shard_rows
        self.rows = 0
        self._shards: list[Shard] = []
        self._waiting: list[pa.Table] = []
        self._counts: dict[str, Any] = {}
        clear_folder(folder)

    @property
    def full(self) -> bool:
        """Whether no more sentences are wanted."""
        return self.rows == self.limit

    def add(self, rows: pa.Table, counts: dict[str, Any]) -> None:
        """Take rows of the stream, and what was counted so far; a full set takes neither."""
        if self.full:
            return
        self._counts = counts
        rows = rows.slice(0, self.limit - self.rows)
        self.rows += rows.num_rows
        self._waiting.append(rows)
        while self.rows - self.shard_rows * len(self._shards) >= self.shard_rows:
            self._write(self.shard_rows)

    def finish(self, made_from: dict[str, Any]) -> Manifest:
        """Write what is left, and the manifest."""
        if self.rows > self.shard_rows * len(self._shards):
            self._write(self.shard_rows)
        counts = dict(self._counts)
        made_from = made_from | {"shard_rows": self.shard_rows, "input": counts.pop("input", None)}
        schema = schema_of(SCHEMA.empty_table())
        manifest = Manifest("sentences", schema, self._shards, made_from, counts)
        write_manifest(self.folder, manifest)
        return manifest

    def _write(self, rows: int) -> None:
        waiting = pa.concat_tables(self._waiting)
        path = self.folder / f"s{len(self._shards):05d}.arrow"
        self._shards.append(write_shard(path, waiting.slice(0, rows)))
        self._waiting = [waiting.slice(rows)]


class _Counts:
    """What was read, kept and dropped so far, and a digest of the chunks that it was."""

    def __init__(self) -> None:
        self.read: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self._input = hashlib.sha256()

    def add(self, split: SplitChunk, rows: pa.Table, duplicates: int) -> dict[str, Any]:
        """Add one chunk's; return all so far, as they stand in the manifest."""
        read, dropped = counts_of(rows)
        self.read.update(read)
        self.dropped.update(dropped)
        self.dropped.update(split.skipped)
        self.dropped["duplicate"] += duplicates
        self._input.update(split.digest.encode())
        reasons = {reason: count for reason, count in sorted(self.dropped.items()) if count}
        return {**self.read, "dropped": reasons, "input": self._input.copy().hexdigest()}


@dataclass
class Tally:
    """How far a split is: chunks split and found, and rows of both sets."""

    computed: int = 0
    reused: int = 0
    rows: int = 0
    rows_computed: int = 0


def split_wikipedia(
    params: Wikipedia,
    inputs: Path,
    folder: Path,
    workers: int,
    progress: Callable[[Tally], None] | None = None,
    cache: Path | None = None,
) -> tuple[dict[str, Manifest], Tally]:
    """Write the sets ``train`` and ``validation`` into ``folder``.

    :param inputs: folder that paths of the user's own files start from.
    :param workers: processes; their number changes no byte.
    :param progress: called after every chunk.
    :param cache: folder of downloaded archives.
    :returns: the manifests, and how many chunks were split and found in the store.
    :raises DistilleryError: for a source that cannot be read, or if a set comes out empty.
    """
    sentence_pass, store, tally = SentencePass.of(params), Store("sentences"), Tally()
    limits = zip(SETS, (params.sentences, params.validation.sentences), strict=True)
    sets = [SentenceSet(folder / name, limit, params.shard_rows) for name, limit in limits]
    seen, counts = SeenKeys(), _Counts()
    chunks = read_chunks(params.source, inputs, cache)
    store.sweep()
    with closing(stream_jobs(partial(split_chunk, sentence_pass), chunks, workers)) as done:
        for split in done:
            rows = store.read(split.key)
            new = seen.add(rows["key"].to_numpy())
            so_far = counts.add(split, rows, int(len(new) - new.sum()))
            held = held_back(rows["article"], params.validation.share)
            for side, chosen in zip(sets, (new & ~held, new & held), strict=True):
                # A copy, without the counts: the store's file is let go.
                side.add(rows.filter(pa.array(chosen)).cast(SCHEMA), so_far)
            _tell(tally, split, sum(side.rows for side in sets), progress)
            if all(side.full for side in sets):
                break
    made_from = {
        **sentence_pass.made_from(),
        "source": params.source.model_dump(),
        "share": params.validation.share,
    }
    _refuse_empty(sets, params)
    return dict(zip(SETS, [side.finish(made_from) for side in sets], strict=True)), tally


def write_empty(folder: Path) -> None:
    """Write two sets without shards: no sentences are wanted."""
    for name in SETS:
        SentenceSet(folder / name, 1, 1).finish({})


def held_back(articles: pa.ChunkedArray, share: float) -> np.ndarray:
    """Return for each sentence whether its article belongs to the validation set.

    :param articles: the article's id of each sentence.
    :return: bool, shape (sentences,); a hash of the id decides.
    """
    encoded = articles.combine_chunks().dictionary_encode()
    keys = string_keys(encoded.dictionary.to_pylist())
    return (uniform(keys, salt("validation")) < share)[encoded.indices.to_numpy()]


def _tell(
    tally: Tally, split: SplitChunk, rows: int, progress: Callable[[Tally], None] | None
) -> None:
    if split.reused:
        tally.reused += 1
    else:
        tally.computed, tally.rows_computed = (
            tally.computed + 1,
            tally.rows_computed + rows - tally.rows,
        )
    tally.rows = rows
    if progress:
        progress(tally)


def _refuse_empty(sets: list[SentenceSet], params: Wikipedia) -> None:
    train, validation = sets
    if not train.rows and not validation.rows:
        raise DistilleryError(
            "params.yaml: wikipedia: no sentence is left. Correct `source` (its form), or loosen "
            "`keep`."
        )
    if not (train.rows and validation.rows):
        name, change = ("validation", "Raise") if train.rows else ("training", "Lower")
        raise DistilleryError(
            f"params.yaml: wikipedia.validation.share: with {params.validation.share:g} of the "
            f"articles the {name} set is empty. {change} it, or add articles."
        )
