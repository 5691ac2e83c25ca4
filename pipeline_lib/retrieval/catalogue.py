"""A catalogue: the vectors, texts and ids of any number of sentences, in memory-mapped files.

It is a shard set (:mod:`pipeline_lib.shards.shard_sets`) of kind ``catalogue``.  Its shards, called segments here,
have the columns ``text``, ``vector``, for int8 ``scale``, and ``id`` if the sentences have ids.  Reading takes no
more memory than what is requested.  ``manifest.json`` has the :class:`Contents` in ``made_from.catalogue``; the
folder may also have the approximate index, and ``mean.npy`` if a mean vector was subtracted.
"""

import re
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch
from pydantic import TypeAdapter, ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_file
from pipeline_lib.models.students.vector_targets import MEAN, load_mean
from pipeline_lib.retrieval.embedders import EncoderReference
from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.shard_sets import Shard, ShardSet, read_manifest, read_shard
from pipeline_lib.shards.vectors import StoredVectors, unit

KIND = "catalogue"
VERSION = 1
"""Of the layout; bump it when older catalogues can no longer be read."""
UNFINISHED = "unfinished.jsonl"
"""The complete segments of an unfinished build, one per line, as in ``manifest.json``."""
BLOCK = 8192
"""Vectors that :meth:`Catalogue.blocks` yields at a time."""
_SEGMENT = re.compile(r"[0-9a-f]{16}\.arrow")
REBUILD = "Delete the folder and build the index again."
Storage = Literal["float32", "float16", "int8"]


@dataclass(frozen=True)
class ApproximateFile:
    """An approximate index of all rows: its kind (usearch, faiss), name, bytes and SHA-256.

    ``answers_to`` is the digest of the segments that it was built from.
    """

    kind: Literal["usearch", "faiss"]
    name: str
    bytes: int
    sha256: str
    answers_to: str


@dataclass(frozen=True)
class Contents:
    """The description of a catalogue's vectors, and of what computed them.

    :ivar width: values per vector as stored, the first of the encoder's.
    :ivar normalised: whether vectors have length 1.
    :ivar mean: SHA-256 of the mean vector subtracted before the vectors were truncated, or None.
    :ivar ids: whether the sentences have ids.
    :ivar given: the provenance of vectors from files, in whose space the encoder embeds queries;
        None: the encoder computed them.
    """

    encoder: EncoderReference
    encoder_width: int
    width: int
    storage: Storage
    normalised: bool
    mean: str | None
    ids: bool
    approximate: ApproximateFile | None = None
    version: int = VERSION
    given: dict[str, str] | None = None

    @property
    def of_vectors(self) -> dict[str, Any]:
        """What determines the vectors besides the sentences: not paths or the approximate index."""
        encoder = asdict(self.encoder) | {"folder": None}
        return asdict(self) | {"encoder": encoder, "approximate": None}

    def shaped(self, vectors: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        """Return an encoder's vectors as they are before packing: float32 (rows, width).

        :param vectors: float32 (rows, encoder's width).
        :param mean: what is subtracted first, float32 (encoder's width,); None: nothing.
        """
        vectors = vectors if mean is None else vectors - mean
        vectors = vectors[:, : self.width]
        return unit(vectors) if self.normalised else vectors


_CONTENTS = TypeAdapter(Contents)


@dataclass(frozen=True)
class Catalogue:
    """A finished catalogue, open for reading.

    :ivar shards: its segments; :ivar contents: their description.
    """

    shards: ShardSet
    contents: Contents

    @classmethod
    def open(cls, folder: Path) -> "Catalogue":
        """Open the catalogue in ``folder``; what its files hold is not compared with their digests."""
        folder = Path(folder)
        if not (folder / "manifest.json").exists():
            if (folder / UNFINISHED).exists():
                raise PotstillError(
                    f"{folder}: its build did not finish. Run the same `distill index build` "
                    "again: it keeps complete segments."
                )
            raise PotstillError(f"{folder}: no index (there is no manifest.json). Make one with `distill index build`.")
        catalogue = cls.read(folder)
        for shard in catalogue.shards.manifest.shards:
            path = catalogue.shards.path(shard)
            size = path.stat().st_size if path.exists() else None
            if size != shard.bytes:
                raise PotstillError(
                    f"{path}: {'missing' if size is None else f'{size} bytes'}, but the manifest "
                    f"says {shard.bytes} bytes. Run the same `distill index build` again, which "
                    "keeps whole segments, then `distill index add` for what was added since."
                )
            catalogue._check_manifest(path, shard)
        return catalogue

    def _check_manifest(self, path: Path, shard: Shard) -> None:
        """Check that a segment has the rows and the width that the manifest says."""
        try:
            table = read_shard(path)
            held = table.num_rows, matrix(table["vector"].slice(0, 1)).shape[1]
        except (PotstillError, KeyError, AttributeError) as error:
            raise PotstillError(f"{path}: not a segment of an index. {REBUILD}") from error
        if held != (shard.rows, self.contents.width):
            raise PotstillError(
                f"{path}: {held[0]:,} vectors of {held[1]} values, but the manifest says "
                f"{shard.rows:,} of {self.contents.width}. {REBUILD}"
            )

    @classmethod
    def read(cls, folder: Path) -> "Catalogue":
        """Read the manifest of the catalogue in ``folder``, and no other file."""
        try:
            manifest = read_manifest(folder)
        except PotstillError as error:
            if not _has_segments(folder):
                raise
            fault = str(error).partition(". ")[0]
            raise PotstillError(f"{fault}. {REBUILD}") from error
        if manifest.kind != KIND:
            raise PotstillError(
                f"{folder}: holds {manifest.kind}, not an index. Make one with `distill index build` in another folder."
            )
        raw = manifest.made_from.get("catalogue")
        version = raw.get("version") if isinstance(raw, dict) else None
        if version != VERSION:
            raise PotstillError(
                f"{folder}/manifest.json: an index of version {version}, but this program reads "
                f"{VERSION}. Delete the folder and build it again."
            )
        try:
            return cls(ShardSet(folder, manifest), _CONTENTS.validate_python(raw, extra="forbid"))
        except ValidationError as error:
            fault = error.errors()[0]
            key = ".".join(map(str, fault["loc"]))
            raise PotstillError(
                f"{folder}/manifest.json: made_from.catalogue.{key}: {fault['msg']}. {REBUILD}"
            ) from error

    def __len__(self) -> int:
        return self.shards.manifest.rows

    @property
    def folder(self) -> Path:
        """The folder that it is in."""
        return self.shards.folder

    def intact_approximate(self) -> Path | None:
        """Read the file of the approximate index; return None if it is not there as described."""
        approximate = self.contents.approximate
        if approximate is None or approximate.answers_to != self.shards.manifest.digest:
            return None
        path = self.folder / approximate.name
        return path if path.exists() and sha256_file(path) == approximate.sha256 else None

    @cached_property
    def mean(self) -> np.ndarray | None:
        """The mean subtracted from the encoder's vectors, float32 (encoder's width,), or None."""
        if self.contents.mean is None:
            return None
        path = self.folder / MEAN
        mean = load_mean(path)
        if sha256_file(path) != self.contents.mean:
            raise PotstillError(f"{path}: altered. {REBUILD}")
        return mean

    @cached_property
    def vectors(self) -> StoredVectors:
        """The vectors by row number, as float32 (rows, width)."""
        return StoredVectors([(table, "") for table in self._tables])

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[int, np.ndarray]]:
        """Yield all vectors in blocks: the first row's number, and float32 (rows, width)."""
        first = 0
        for table in self._tables:
            for start in range(0, table.num_rows, size):
                rows = table.slice(start, size)
                yield first + start, _decoded(rows)
            first += table.num_rows

    def rows(self) -> Iterator[tuple[list[str], list[str] | None]]:
        """Yield each segment's texts and ids (None if there are none)."""
        for table in self._tables:
            yield table["text"].to_pylist(), table["id"].to_pylist() if self.contents.ids else None

    def text(self, row: int) -> str:
        """Return a row's sentence, reading no other."""
        return self._value("text", row)

    def id(self, row: int) -> str | int:
        """Return a row's id, or its number if there are no ids."""
        return self._value("id", row) if self.contents.ids else row

    def faults(self) -> list[str]:
        """Read everything; return one line per file that is missing, truncated or altered."""
        faults = self.shards.verify()
        files = [(MEAN, self.contents.mean)] if self.contents.mean else []
        if approximate := self.contents.approximate:
            files.append((approximate.name, approximate.sha256))
        for name, digest in files:
            path = self.folder / name
            if not path.exists():
                faults.append(f"{path}: missing")
            elif sha256_file(path) != digest:
                faults.append(f"{path}: altered (its SHA-256 is not the manifest's)")
        return faults

    def _value(self, column: str, row: int) -> str:
        part = int(np.searchsorted(self._ends, row, side="right"))
        table = self._tables[part]
        return table[column][row - int(self._ends[part]) + table.num_rows].as_py()

    @cached_property
    def _tables(self) -> list[pa.Table]:
        # Arrow finds a text by its offset in the mapped file: opening only reads the files' ends.
        return [*self.shards.tables()]

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.cumsum([table.num_rows for table in self._tables])


def is_index(folder: Path) -> bool:
    """Whether a folder with a manifest holds an index; its files say so if the manifest is torn."""
    try:
        return read_manifest(folder).kind == KIND
    except PotstillError:
        return _has_segments(folder)


def faults_of_index(folder: Path) -> list[str]:
    """Return one line per fault of the index in ``folder``; none if it is sound."""
    try:
        return Catalogue.open(folder).faults()
    except PotstillError as error:
        return [str(error)]


def _has_segments(folder: Path) -> bool:
    """Whether there are files with the names of segments: the start of their keys."""
    return any(_SEGMENT.fullmatch(path.name) for path in folder.iterdir())


def _decoded(rows: pa.Table) -> np.ndarray:
    values = matrix(rows["vector"])
    if "scale" in rows.column_names:
        return np.multiply(values, rows["scale"].to_numpy()[:, None], dtype=np.float32)
    if values.dtype == np.float32:
        return values
    # torch converts float16 twice as fast as numpy in one thread.  It warns that a mapped array is
    # not writable, but nothing writes to it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(values).float().numpy()


def is_whole(path: Path, shard: Shard) -> bool:
    """Whether a segment's file exists as described."""
    try:
        return path.stat().st_size == shard.bytes and sha256_file(path) == shard.sha256
    except OSError:
        return False
