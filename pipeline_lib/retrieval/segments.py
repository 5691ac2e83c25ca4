"""The segments of a catalogue: embedded or reused, recorded one by one, and finished together.

A segment is identified by what determines its vectors (encoder, form, code, libraries) and by its sentences.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.files import disk_errors, sha256_file, sha256_json, sweep
from pipeline_lib.base.processor import computed_on
from pipeline_lib.retrieval.approximate import write_approximate
from pipeline_lib.retrieval.catalogue import KIND, UNFINISHED, ApproximateFile, Catalogue, Contents, is_whole
from pipeline_lib.retrieval.documents import GivenDocuments
from pipeline_lib.retrieval.sentence_rows import Rows
from pipeline_lib.shards.columns import list_column
from pipeline_lib.shards.engine.protocol import Engine
from pipeline_lib.shards.fingerprint import TRAINING_LIBRARIES, code_fingerprint, deciding, library_versions
from pipeline_lib.shards.shard_sets import (
    Manifest,
    Shard,
    ShardSet,
    read_manifest,
    read_shard,
    schema_of,
    write_manifest,
    write_shard,
)
from pipeline_lib.shards.vectors import pack


@dataclass
class BuildReport:
    """How many segments and rows were embedded or reused, and which rows were left out.

    :ivar before: how many rows the catalogue had; None: there was none.
    :ivar unknown: how many of the rows that were embedded have no word that the encoder knows.
    """

    computed: int = 0
    reused: int = 0
    rows_computed: int = 0
    rows_reused: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    before: int | None = None
    unknown: int = 0

    def __str__(self) -> str:
        return f"computed {self.computed} segments, reused {self.reused}"

    def add(self, shard: Shard, reused: bool) -> None:
        """Count one segment."""
        if reused:
            self.reused, self.rows_reused = self.reused + 1, self.rows_reused + shard.rows
        else:
            self.computed, self.rows_computed = self.computed + 1, self.rows_computed + shard.rows


OnSegment = Callable[[BuildReport], None]


@dataclass(frozen=True)
class _Segment:
    """One segment to embed, or to reuse.

    :ivar given: the vectors from files; None: the encoder computes them.
    :ivar known: the segment recorded under its key, if any.
    """

    folder: Path
    contents: Contents
    mean: np.ndarray | None
    device: str
    given: GivenDocuments | None
    rows: Rows
    key: str
    known: Shard | None


class SegmentWriter:
    """Writes the segments of one catalogue, and records each complete one."""

    def __init__(
        self, folder: Path, contents: Contents, mean: np.ndarray | None, device: str, documents: GivenDocuments | None
    ) -> None:
        self.folder, self.contents, self.mean, self.device = folder, contents, mean, device
        self.given = documents
        self.shards: list[Shard] = []
        self._libraries = library_versions(*TRAINING_LIBRARIES)
        self._known = {shard.source: shard for shard in _noted(folder)}

    def write(
        self, segments: Iterable[Rows], engine: Engine, report: BuildReport, on_segment: OnSegment | None
    ) -> None:
        """Embed or reuse segments, in order."""
        # A killed build may have left an incomplete line.
        self._note("\n")
        if self.given is not None:
            encoder = self.contents.encoder.load(self.device)
            segments = self.given.checked(segments, encoder, self.mean)
        jobs = (self._job(rows) for rows in segments)
        for shard, reused, unknown in engine.stream(_embed, jobs):
            self.shards.append(shard)
            self._note(f"{json.dumps(asdict(shard))}\n")
            report.add(shard, reused)
            report.unknown += unknown
            if on_segment:
                on_segment(report)

    def finish(self, counts: dict[str, int], approximate: str | None, before: Catalogue | None = None) -> Catalogue:
        """Write the approximate index and the manifest, and delete files no longer needed.

        :param before: the finished catalogue that was in the folder, if any.
        """
        manifest = self._manifest(counts)
        if approximate:
            file = self._write_approximate(approximate, manifest, before)
            self.contents = replace(self.contents, approximate=file)
            manifest = self._manifest(counts)
        write_manifest(self.folder, manifest)
        kept = {shard.name for shard in self.shards}
        kept |= {file.name} if approximate else set()
        for path in self.folder.iterdir():
            if path.suffix in (".arrow", ".usearch", ".faiss") and path.name not in kept:
                path.unlink()
        (self.folder / UNFINISHED).unlink(missing_ok=True)
        sweep(self.folder)
        return Catalogue.open(self.folder)

    def _job(self, rows: Rows) -> _Segment:
        contents = self.contents.of_vectors
        code = [code_fingerprint(__name__), deciding(self._libraries)]
        digest = self.given and self.given.digest
        key = sha256_json([contents, code, digest, rows.texts, rows.ids])
        settings = self.folder, self.contents, self.mean, self.device, self.given
        return _Segment(*settings, rows, key, self._known.get(key))

    def _note(self, line: str) -> None:
        # Append-only: a segment recorded twice is the same one.
        path = self.folder / UNFINISHED
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "a", encoding="utf-8") as file:
                file.write(line)

    def _manifest(self, counts: dict[str, int]) -> Manifest:
        schema = schema_of(read_shard(self.folder / self.shards[0].name))
        made_from = {"catalogue": asdict(self.contents), "libraries": self._libraries}
        return Manifest(KIND, schema, self.shards, made_from, counts)

    def _write_approximate(self, kind: str, manifest: Manifest, before: Catalogue | None) -> ApproximateFile:
        """Write the approximate index under a new name: the old one stays in use until the end.

        If the old one is intact and of the same first segments, the other rows join it, which may
        be none; otherwise it is built from all rows.
        """
        digest = manifest.digest
        path = self.folder / f"approximate-{digest[:12]}.{kind}"
        old, first, added = None, 0, manifest
        if before and self._starts_with(before, kind) and (old := before.intact_approximate()):
            first = len(before)
            added = replace(manifest, shards=self.shards[len(before.shards.manifest.shards) :])
        blocks = Catalogue(ShardSet(self.folder, added), self.contents).blocks()
        numbered = ((first + start, vectors) for start, vectors in blocks)
        if old is None or first < manifest.rows:
            write_approximate(kind, path, numbered, self.contents.width, old)
        return ApproximateFile(kind, path.name, path.stat().st_size, sha256_file(path), digest)

    def _starts_with(self, before: Catalogue, kind: str) -> bool:
        """Whether an approximate index of this kind has the first of the segments written here."""
        approximate = before.contents.approximate
        known = [shard.sha256 for shard in before.shards.manifest.shards]
        return (
            approximate is not None
            and approximate.kind == kind
            and known == [shard.sha256 for shard in self.shards[: len(known)]]
        )


def _noted(folder: Path) -> Iterator[Shard]:
    """Yield the segments of an earlier build, finished or not, whose records are complete."""
    notes: list[Any] = []
    if (folder / "manifest.json").exists():
        notes += [asdict(shard) for shard in read_manifest(folder).shards]
    if (folder / UNFINISHED).exists():
        notes += (folder / UNFINISHED).read_text("utf-8", errors="replace").split("\n")
    for note in notes:
        # The last line may be incomplete.
        with suppress(ValueError, TypeError):
            yield Shard(**(json.loads(note) if isinstance(note, str) else note))


def _embed(job: _Segment) -> tuple[Shard, bool, int]:
    """Embed one segment, unless its file is complete already.

    :returns: the segment, whether it was complete, and else of how many rows no word is known.
    """
    path = job.folder / f"{job.key[:16]}.arrow"
    if job.known is not None and is_whole(path, job.known):
        return job.known, True, 0
    contents = job.contents
    embedder = job.given or contents.encoder.load(job.device)
    vectors = contents.shaped(embedder.encode(job.rows.texts), job.mean)
    stored, scale = pack(vectors, contents.storage)
    columns = {"text": pa.array(job.rows.texts, pa.large_string()), "vector": list_column(stored)}
    if scale is not None:
        columns["scale"] = pa.array(scale)
    if job.rows.ids is not None:
        columns["id"] = pa.array(job.rows.ids, pa.large_string())
    shard = write_shard(path, pa.table(columns), job.key)
    unknown = 0 if job.given else int(embedder.words.none_in(job.rows.texts).sum())
    return replace(shard, computed_on=computed_on(job.device)), False, unknown
