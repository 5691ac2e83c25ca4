"""Sentence vectors given in files, looked up by the content of their sentences.

They are written to one Arrow file as they are read, a few thousand at a time, with an index from
content keys to vectors beside it.  So memory holds only the keys and one batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import atomic_path, read_record, sha256_file, sha256_json, write_json
from pipeline_lib.outputs.files.content_keys import content_keys, read_texts
from pipeline_lib.outputs.files.teacher_rows import described, format_of
from pipeline_lib.outputs.files.vector_files import VectorRows, read_vectors
from pipeline_lib.outputs.health import MAX_ROWS, check_outputs
from pipeline_lib.params import SentenceVectorFiles
from pipeline_lib.shards.columns import column_suffixes, list_column
from pipeline_lib.shards.engine.passes import Output, ShardPass
from pipeline_lib.shards.shard_sets import read_shard, write_shard
from pipeline_lib.shards.vectors import StoredVectors, pack, unit

VECTORS, PLACES, RECORD = "vectors.arrow", "places.arrow", "vectors.json"
"""The vectors in the files' order; the sorted keys, each with its vector's index; and the
metadata."""
COUNTS = ("rows", "answered", "repeated", "errors")
SAME = 0.999
"""Two vectors of a text with at least this cosine are the same: APIs' rounding varies."""
CHUNK = 8192


class MappedVectors(StoredVectors):
    """The vectors of one Arrow file of many batches, each memory-mapped on its own, not copied."""

    def __init__(self, path: Path) -> None:
        """Map a file with a column of fixed-size lists of float32."""
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        columns = [reader.get_batch(n).column(0) for n in range(reader.num_record_batches)]
        # Combining a table column's chunks copies it, even if there is only one.
        self._parts = [column.flatten().to_numpy().reshape(len(column), -1) for column in columns]
        self._scales = [None] * len(columns)
        self._ends = np.cumsum([len(column) for column in columns])


@dataclass(frozen=True)
class GivenVectors:
    """Sentence vectors by content key.

    :ivar keys: uint64 (sentences,), sorted, unique; :ivar places: their vectors' indices, int64.
    :ivar vectors: float32 (rows, width), memory-mapped.
    :ivar provenance: their origin; :ivar counts: of the files' rows; :ivar errors: how often each
        reason for no vector was given.
    """

    keys: np.ndarray
    places: np.ndarray
    vectors: MappedVectors
    provenance: dict[str, str]
    counts: dict[str, int]
    errors: dict[str, int]

    @property
    def width(self) -> int:
        """Values per vector."""
        return self.vectors.shape[1]

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the index of each key's vector, int64 (rows,); -1 where there is none."""
        numbers = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[numbers] == keys, self.places[numbers], -1)

    def of_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of texts, float32 (texts, width), NaN where there is none."""
        places = self.find(content_keys([texts]))
        vectors = np.full((len(texts), self.width), np.nan, np.float32)
        vectors[places >= 0] = self.vectors[places[places >= 0]]
        return vectors

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what :func:`gather_vectors` wrote."""
        table, metadata = read_shard(folder / PLACES), read_record(folder / RECORD, "provenance")
        return cls(
            *(table["key"].to_numpy(), table["place"].to_numpy(), MappedVectors(folder / VECTORS)),
            *(
                metadata["provenance"],
                {name: metadata["counts"][name] for name in COUNTS},
                metadata["errors"],
            ),
        )


def gather_vectors(
    files: Sequence[Path], settings: SentenceVectorFiles, folder: Path
) -> GivenVectors:
    """Read the sentence vectors in files into ``folder``, by content key.

    Rows with an ``error`` have none.  A text that is repeated with the same vector counts once.

    :raises DistilleryError: naming file and row, for an invalid vector, or two vectors of one text;
        or if there are none, or all are the same.
    """
    reader, where = _Reader(settings), ", ".join(path.name for path in files)
    with atomic_path(folder / VECTORS) as temporary:
        reader.write(files, temporary)
        if not reader.count:
            reasons = "; ".join(f"{reason} ({n:,})" for reason, n in reader.errors.items())
            raise DistilleryError(f"{where}: no vectors. {reasons or 'Put rows into the file.'}")
        vectors = MappedVectors(temporary)
        keys, places = reader.places(vectors)
        _check_health(vectors, keys, places, where)
    write_shard(folder / PLACES, pa.table({"key": keys, "place": places}))
    errors = sum(reader.errors.values())
    counts = reader.count + errors, len(keys), reader.count - len(keys), errors
    metadata = {"provenance": reader.provenance, "counts": dict(zip(COUNTS, counts, strict=True))}
    write_json(folder / RECORD, metadata | {"errors": reader.errors, "mask": settings.mask})
    return GivenVectors.read(folder)


def _check_health(vectors: MappedVectors, keys: np.ndarray, places: np.ndarray, where: str) -> None:
    chosen = slice(None, None, -(-len(keys) // MAX_ROWS))
    remedy = "Nothing was stored: have the texts embedded again, and put that file here."
    check_outputs(vectors[places[chosen]], keys[chosen], where, remedy)


class _Reader:
    """Writes the vectors of files in sequence, and records where each came from."""

    def __init__(self, settings: SentenceVectorFiles) -> None:
        self.settings = settings
        self.count, self.width = 0, 0
        self.errors: dict[str, int] = {}
        self.provenance = dict(settings.provenance)
        self._keys: list[np.ndarray] = []
        self._numbers: list[np.ndarray] = []
        self._files: list[tuple[int, Path]] = []

    def write(self, files: Sequence[Path], path: Path) -> None:
        writer = None
        with pa.OSFile(str(path), "wb") as sink:
            for file in files:
                provenance = described(file, format_of(file, self.settings.format)).provenance
                self.provenance = {**provenance, **self.provenance}
                self._files.append((self.count, file))
                for rows in read_vectors(file, self.settings.format):
                    self._note(file, rows)
                    if not len(rows.keys):
                        continue
                    table = pa.table({"vector": list_column(rows.vectors)})
                    writer = writer or pa.ipc.new_file(sink, table.schema)
                    writer.write_table(table)
            if writer is not None:
                writer.close()

    def _note(self, file: Path, rows: VectorRows) -> None:
        for reason in rows.errors:
            self.errors[reason] = self.errors.get(reason, 0) + 1
        if not len(rows.keys):
            return
        self.width = self.width or rows.vectors.shape[1]
        if rows.vectors.shape[1] != self.width:
            raise DistilleryError(
                f"{file}: row {rows.numbers[0]}: a vector of {rows.vectors.shape[1]:,} values, but "
                f"those before it have {self.width:,}. Use vectors of one model and one length."
            )
        self.count += len(rows.keys)
        self._keys.append(rows.keys)
        self._numbers.append(rows.numbers)

    def places(self, vectors: MappedVectors) -> tuple[np.ndarray, np.ndarray]:
        """Return the unique keys in order, and the index of each one's vector.

        :raises DistilleryError: if a text has two vectors.
        """
        keys = np.concatenate(self._keys)
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        again = np.concatenate([[False], ordered[1:] == ordered[:-1]])
        first = order[~again][np.cumsum(~again) - 1]
        for start in range(0, len(order), CHUNK):
            chosen = np.flatnonzero(again[start : start + CHUNK]) + start
            pair = order[chosen], first[chosen]
            cosines = (unit(vectors[pair[0]]) * unit(vectors[pair[1]])).sum(1)
            if len(other := np.flatnonzero(cosines < SAME)):
                one, two = (self._row(int(indices[other[0]])) for indices in pair)
                raise DistilleryError(
                    f"{one}: the same text as {two}, with another vector (cosine "
                    f"{cosines[other[0]]:.3f}). Keep one of the two rows."
                )
        return ordered[~again], order[~again]

    def _row(self, index: int) -> str:
        file = [path for start, path in self._files if start <= index][-1]
        return f"{file}: row {np.concatenate(self._numbers)[index]}"


@dataclass(frozen=True)
class GivenVectorPass(ShardPass):
    """The pass that looks up the vector of every sentence of a shard by its content key.

    Sentences without one have NaN in all values; for int8, in the scale.

    :ivar folder: of the vectors; :ivar digest: of their content; :ivar storage: float32, float16
        or int8.
    :ivar mask: what a masked word is replaced by; :ivar provenance: the vectors' origin.
    """

    kind: ClassVar[str] = "vectors"
    folder: Path
    digest: str
    mask: str
    storage: str
    provenance: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, folder: Path, storage: str) -> Self:
        """Return the pass for the vectors in ``folder``."""
        metadata = read_record(folder / RECORD, "mask", "provenance")
        return cls(
            folder,
            digest_of(folder),
            metadata["mask"],
            storage,
            tuple(sorted(metadata["provenance"].items())),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the outputs besides the input and the code; no model was run."""
        settings = {"teacher": self.digest, "pooling": None, "max_length": None}
        settings |= {"mask": self.mask, "provenance": dict(self.provenance)}
        return settings | {"storage": self.storage, "precision": "as given"}

    def load(self) -> None:
        """Memory-map the vectors, so that forked workers share them."""
        loaded(self.folder, self.digest)

    def outputs(self, rows: pa.Table) -> Iterator[Output]:
        """Yield columns key, vector (fixed-size list) and, for int8, scale (float32).

        A pair's second sentence has columns ``vector_2`` and ``scale_2``, and counts separately.
        """
        given_vectors = loaded(self.folder, self.digest)
        columns: dict[str, Any] = {"key": rows["key"]}
        counts = {"answered": 0, "unanswered": 0}
        sides = zip(column_suffixes(rows), read_texts(rows, self.mask), strict=True)
        for side, texts in sides:
            vectors = given_vectors.of_texts(texts)
            known = ~np.isnan(vectors).any(axis=1)
            counts["answered"] += int(known.sum())
            counts["unanswered"] += int((~known).sum())
            stored, scale = _packed(vectors, known, self.storage)
            columns[f"vector{side}"] = list_column(stored)
            if scale is not None:
                columns[f"scale{side}"] = pa.array(scale)
        yield pa.table(columns), counts

    def check(self, content: pa.Table, output: pa.Table, name: str) -> None:
        """Check that a shard's vectors are finite, and differ as different sentences' do."""
        sides = zip(column_suffixes(content), read_texts(content, self.mask), strict=True)
        for side, texts in sides if output.num_rows else ():
            values = StoredVectors([(output, side)])[np.arange(output.num_rows)]
            known = ~np.isnan(values).all(axis=1)
            remedy = (
                "Nothing of this shard was stored. Set `sentence_vectors.storage` to float32, or "
                "have the texts embedded again."
            )
            keys = content_keys([texts])[known]
            check_outputs(values[known], keys, f"{self.kind} of {name}", remedy)


def digest_of(folder: Path) -> str:
    """Return the SHA-256 over the vectors in ``folder`` and their index."""
    return sha256_json([sha256_file(folder / name) for name in (VECTORS, PLACES)])


@lru_cache(maxsize=1)
def loaded(folder: Path, digest: str) -> GivenVectors:
    """Read the vectors with this digest; the process caches the last ones."""
    return GivenVectors.read(folder)


def _packed(
    vectors: np.ndarray, known: np.ndarray, storage: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return vectors as stored, and the scales for int8; see :class:`GivenVectorPass`."""
    with np.errstate(over="ignore"):
        stored, scale = pack(np.where(known[:, None], vectors, 0.0), storage)
    if scale is None:
        stored[~known] = np.nan
    else:
        scale[~known] = np.nan
    return stored, scale
