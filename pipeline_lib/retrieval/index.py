"""An index: the vectors, texts and ids of any number of sentences, as a shard set.

A pass embeds blocks of sentences.  The store keeps its outputs: a build that was killed, or is repeated with a changed
file, embeds only the blocks that are missing.  One file of usearch may lie beside the shards.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_file, sole_writer, sweep
from pipeline_lib.retrieval.approximate import graph_type, write_approximate
from pipeline_lib.retrieval.embedders import EncoderReference, IndexPass
from pipeline_lib.retrieval.sentence_rows import BLOCK_ROWS, DistinctRows, Rows
from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.engine.passes import PassStats, Piece, PieceResult, stream_pieces
from pipeline_lib.shards.engine.protocol import Engine
from pipeline_lib.shards.shard_sets import (
    MANIFEST,
    Manifest,
    ShardSet,
    read_manifest,
    read_shard,
    schema_of,
    write_manifest,
)
from pipeline_lib.shards.store import Store
from pipeline_lib.shards.vectors import StoredVectors

VECTORS = 8192
"""Vectors that are scored at a time."""
AGAIN = "Run the same `distill index` again: it embeds only what is missing."
REBUILD = "Delete the folder and build the index again."
_FILE = re.compile(r"[0-9a-f]{16}\.arrow|approximate-[0-9a-f]{12}\.\w+")


@dataclass(frozen=True)
class ApproximateFile:
    """An approximate index of all rows; its name has the digest of their shards."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Index:
    """A finished index, open for reading."""

    shards: ShardSet
    encoder: EncoderReference
    approximate: ApproximateFile | None

    @classmethod
    def open(cls, folder: Path) -> "Index":
        """Open the index in ``folder``; what its files hold is not compared with their digests."""
        if not (Path(folder) / MANIFEST).exists():
            raise PotstillError(f"{folder}: no index (there is no {MANIFEST}). Make one with `distill index`.")
        index = cls.read(Path(folder))
        for shard in index.shards.manifest.shards:
            path = index.shards.path(shard)
            held = f"{path.stat().st_size} bytes" if path.exists() else "missing"
            if held != f"{shard.bytes} bytes":
                raise PotstillError(f"{path}: {held}, but the manifest says {shard.bytes} bytes. {AGAIN}")
        _ = index.tables
        return index

    @classmethod
    def read(cls, folder: Path) -> "Index":
        """Read the manifest of the index in ``folder``, and no other file."""
        try:
            manifest = read_manifest(folder)
        except PotstillError as error:
            raise PotstillError(f"{str(error).partition('. ')[0]}. {REBUILD}") from error
        if manifest.kind != IndexPass.kind:
            raise PotstillError(f"{folder}: holds {manifest.kind}, not an index. Make one with `distill index`.")
        try:
            encoder, file = (manifest.made_from[name] for name in ("encoder", "approximate"))
            return cls(ShardSet(folder, manifest), EncoderReference(**encoder), file and ApproximateFile(**file))
        except (KeyError, TypeError) as error:
            raise PotstillError(f"{folder / MANIFEST}: altered ({error}). {REBUILD}") from error

    def __len__(self) -> int:
        return self.shards.manifest.rows

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.shards.folder

    @cached_property
    def vectors(self) -> StoredVectors:
        """The vectors by row number, as float32 (rows, width)."""
        return StoredVectors([(table, "") for table in self.tables])

    def blocks(self, size: int = VECTORS) -> Iterator[tuple[int, np.ndarray]]:
        """Yield all vectors in blocks: the first row's number, and (rows, width) as they are stored."""
        first = 0
        for table in self.tables:
            for start in range(0, table.num_rows, size):
                yield first + start, matrix(table["vector"].slice(start, size))
            first += table.num_rows

    def text(self, row: int) -> str:
        """Return a row's sentence, reading no other."""
        return self._rows["text"][row].as_py()

    def id(self, row: int) -> str | int:
        """Return a row's id, or its number if there are no ids."""
        return self._rows["id"][row].as_py() if "id" in self.shards.manifest.schema else row

    @property
    def approximate_file(self) -> Path | None:
        """The file of the approximate index, if it is there as described, and of these shards."""
        if self.approximate is None or self.approximate.name != _file_name(self.shards):
            return None
        path = self.folder / self.approximate.name
        return path if path.exists() and path.stat().st_size == self.approximate.bytes else None

    def faults(self) -> list[str]:
        """Read the approximate index; return the fault of a missing or an altered one."""
        path = self.approximate_file
        whole = self.approximate is None or (path and sha256_file(path) == self.approximate.sha256)
        return [] if whole else [f"{self.folder / self.approximate.name}: missing, altered or of other rows. {AGAIN}"]

    @cached_property
    def tables(self) -> list[pa.Table]:
        """The shards, memory-mapped; their numbers of rows are the manifest's."""
        # Arrow finds a text by its offset in the mapped file: opening only reads the files' ends.
        try:
            return [*self.shards.tables()]
        except PotstillError as error:
            raise PotstillError(f"{str(error).partition('. ')[0]}. {REBUILD}") from error

    @cached_property
    def _rows(self) -> pa.Table:
        return pa.concat_tables(self.tables)


def faults_of_index(folder: Path) -> list[str]:
    """Return the faults of an index beyond those of its shards."""
    try:
        return Index.open(folder).faults()
    except PotstillError as error:
        return [str(error)]


def build(
    folder: Path,
    index_pass: IndexPass,
    batches: Iterable[Rows],
    engine: Engine,
    approximate: bool = False,
    on_block: Callable[[PassStats], None] | None = None,
    block_rows: int = BLOCK_ROWS,
) -> tuple[Index, PassStats]:
    """Build the index of these sentences in ``folder``; an older one stays in use until the end.

    Empty texts, and rows that equal an earlier one, are left out and counted in the manifest.
    """
    if approximate:
        graph_type()
    with sole_writer(folder):
        before = _index_in(folder, index_pass)
        # Loaded here, so that forked workers share it.
        index_pass.load()
        distinct, stats = DistinctRows(), PassStats()
        pieces = (Piece(rows.digest, rows.table()) for rows in distinct.blocks(batches, block_rows))
        answers = []
        for answer in stream_pieces(index_pass, pieces, engine):
            answers.append(answer)
            stats.add(answer)
            if on_block:
                on_block(stats)
        if not answers:
            raise PotstillError(f"{folder}: no sentences to embed. Give a file that has some.")
        return _finish(folder, index_pass, answers, distinct.left_out, approximate, before), stats


def _index_in(folder: Path, index_pass: IndexPass) -> Index | None:
    """Return the index in a folder, if it has the same encoder; a folder with other files is refused."""
    if not (folder / MANIFEST).exists():
        if any(not (_FILE.fullmatch(path.name) or path.name.startswith(".")) for path in folder.iterdir()):
            raise PotstillError(f"{folder}: holds other files. Name a folder that is empty or new.")
        return None
    index = Index.read(folder)
    other = replace(index_pass, encoder=replace(index.encoder, precision=index_pass.encoder.precision))
    if other.settings != index_pass.settings:
        raise PotstillError(f"{folder}: holds an index of another encoder. Delete it, or name another folder.")
    return index


def _finish(
    folder: Path,
    index_pass: IndexPass,
    answers: list[PieceResult],
    left_out: dict[str, int],
    approximate: bool,
    before: Index | None,
) -> Index:
    """Link the shards, write the approximate index and the manifest, and delete what is not in use any more."""
    store, shards = Store(index_pass.kind), []
    for answer in answers:
        key, [shard] = index_pass.key(answer.piece.digest), answer.shards
        shards.append(replace(shard, name=f"{key[:16]}.arrow"))
        store.link_into(key, folder / shards[-1].name)
    schema = schema_of(read_shard(folder / shards[0].name))
    unknown = {"unknown": sum(shard.counts["unknown"] for shard in shards)}
    made_from = index_pass.made_from() | {"encoder": asdict(index_pass.encoder), "approximate": None}
    manifest = Manifest(index_pass.kind, schema, shards, made_from, left_out | unknown)
    if approximate:
        file = _approximate_of(Index(ShardSet(folder, manifest), index_pass.encoder, None), before)
        manifest.made_from["approximate"] = asdict(file)
    write_manifest(folder, manifest)
    in_use = {shard.name for shard in shards} | ({file.name} if approximate else set())
    for path in folder.iterdir():
        if _FILE.fullmatch(path.name) and path.name not in in_use:
            path.unlink()
    sweep(folder)
    return Index.open(folder)


def _approximate_of(index: Index, before: Index | None) -> ApproximateFile:
    """Return the approximate index of these shards: the one that is there if it is intact, else a new one."""
    name = _file_name(index.shards)
    if before and before.approximate and before.approximate.name == name and not before.faults():
        return before.approximate
    path = index.folder / name
    write_approximate(path, index.blocks(), index.vectors.shape[1])
    return ApproximateFile(name, path.stat().st_size, sha256_file(path))


def _file_name(shards: ShardSet) -> str:
    return f"approximate-{shards.manifest.digest[:12]}.usearch"
