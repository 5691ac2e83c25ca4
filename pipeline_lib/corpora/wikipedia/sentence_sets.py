"""Two shard sets of sentences: a training set, and a validation set of other articles.

Chunks of articles are split by many processes; what becomes of their sentences is decided here, in
the input's order.  Each set takes its first sentences, and a sentence that equals an earlier one is
dropped, whether or not a set took that one.  So both sets are pure functions of the input: a larger
number of sentences only adds shards, and leaves the validation set as it is.
"""

import hashlib
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import fresh_folder
from pipeline_lib.base.hashing import SeenKeys, salt, string_keys, uniform
from pipeline_lib.corpora.wikipedia.chunks import read_chunks
from pipeline_lib.corpora.wikipedia.splitting import SCHEMA, SentencePass
from pipeline_lib.params import Wikipedia
from pipeline_lib.shards.engine.passes import PassStats, Piece, PieceResult, stream_pieces
from pipeline_lib.shards.engine.protocol import Engine
from pipeline_lib.shards.shard_sets import Manifest, Shard, schema_of, write_manifest, write_shard

SETS = ("train", "validation")


class SentenceSet:
    """The first ``limit`` sentences of a stream, written as shards of ``shard_rows``, the last perhaps fewer."""

    def __init__(self, folder: Path, limit: int, shard_rows: int) -> None:
        self.folder, self.limit, self.shard_rows = folder, limit, shard_rows
        self.rows = 0
        self._shards: list[Shard] = []
        self._waiting: list[pa.Table] = []
        self._counts: dict[str, Any] = {}
        fresh_folder(folder)

    @property
    def full(self) -> bool:
        """Whether no more sentences are wanted."""
        return self.rows == self.limit

    def add(self, rows: pa.Table, counts: dict[str, Any]) -> None:
        """Add rows of the stream, and the counts so far; a full set ignores both."""
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
    """What was read, kept and dropped so far, and a digest of the chunks read."""

    def __init__(self) -> None:
        self.read: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self._input = hashlib.sha256()

    def add(self, split: PieceResult, duplicates: int) -> dict[str, Any]:
        """Add one chunk's counts; return the totals so far, as the manifest records them."""
        counts = split.shards[0].counts
        self.read.update(counts["read"])
        self.dropped.update(counts["dropped"])
        self.dropped.update(split.piece.note)
        self.dropped["duplicate"] += duplicates
        self._input.update(split.piece.digest.encode())
        reasons = {reason: count for reason, count in sorted(self.dropped.items()) if count}
        return {**self.read, "dropped": reasons, "input": self._input.copy().hexdigest()}


def split_wikipedia(
    params: Wikipedia,
    inputs: Path,
    folder: Path,
    engine: Engine,
    on_progress: Callable[[PassStats, int], None] | None = None,
    cache: Path | None = None,
) -> tuple[dict[str, Manifest], PassStats]:
    """Write the sets ``train`` and ``validation`` into ``folder``.

    :param inputs: folder that paths of the user's own files start from.
    :param on_progress: called after every chunk with the report and the rows of both sets.
    :param cache: folder of downloaded archives.
    :returns: the manifests, and how many chunks were split and how many found in the store.
    """
    sentence_pass, report = SentencePass.of(params), PassStats()
    limits = zip(SETS, (params.sentences, params.validation.sentences), strict=True)
    sets = [SentenceSet(folder / name, limit, params.shard_rows) for name, limit in limits]
    seen, counts, lots = SeenKeys(), _Counts(), Lots()
    chunks = read_chunks(params.source, inputs, cache)
    pieces = (Piece(chunk.digest, chunk, chunk.skipped) for chunk in chunks)
    with closing(stream_pieces(sentence_pass, pieces, engine)) as done:
        for split in done:
            (rows,) = split.tables(sentence_pass)
            new = seen.add(rows["key"].to_numpy())
            so_far = counts.add(split, int(len(new) - new.sum()))
            drawn = lots.draw(rows["article"])
            held = drawn < params.validation.share
            for side, chosen in zip(sets, (new & ~held, new & held), strict=True):
                # A copy, so that the store's file is released.
                side.add(rows.filter(pa.array(chosen)), so_far)
            report.add(split)
            if on_progress:
                on_progress(report, sum(side.rows for side in sets))
            if all(side.full for side in sets):
                break
    made_from = {**sentence_pass.made_from(), "source": params.source.model_dump(), "share": params.validation.share}
    _refuse_empty(sets, params, lots)
    return dict(zip(SETS, [side.finish(made_from) for side in sets], strict=True)), report


def write_empty(folder: Path) -> None:
    """Write two sets without shards, as no sentences are wanted."""
    for name in SETS:
        SentenceSet(folder / name, 1, 1).finish({})


class Lots:
    """Draws a number for each article, by a hash of its id: the lowest are for validation."""

    def __init__(self) -> None:
        self.lowest, self.highest = 1.0, 0.0

    def draw(self, articles: pa.ChunkedArray) -> np.ndarray:
        """Return the number of each sentence's article, from 0 to 1, float64 (sentences,)."""
        encoded = articles.combine_chunks().dictionary_encode()
        drawn = uniform(string_keys(encoded.dictionary.to_pylist()), salt("validation"))
        self.lowest = min([self.lowest, *drawn.tolist()])
        self.highest = max([self.highest, *drawn.tolist()])
        return drawn[encoded.indices.to_numpy()]

    @property
    def between(self) -> float | None:
        """A share for which neither set is empty; None if there is one article only."""
        return (self.lowest + self.highest) / 2 if self.lowest < self.highest else None


def _refuse_empty(sets: list[SentenceSet], params: Wikipedia, lots: Lots) -> None:
    train, validation = sets
    if not train.rows and not validation.rows:
        raise PotstillError(
            "params.yaml: wikipedia: no sentence is left. Correct `source` (its form), or loosen `keep`."
        )
    if not (train.rows and validation.rows):
        name = "validation" if train.rows else "training"
        share = lots.between
        if share is None:
            raise PotstillError(
                f"params.yaml: wikipedia.source: only one article has sentences, so the {name} set is empty: training "
                "and validation have different articles. Add at least one article."
            )
        raise PotstillError(
            f"params.yaml: wikipedia.validation.share: with {params.validation.share:g} of the "
            f"articles the {name} set is empty. Set it to {share:.4g}, or add articles."
        )
