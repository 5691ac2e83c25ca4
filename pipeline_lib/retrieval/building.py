"""Building a catalogue segment by segment, and adding to it.

A segment is known by what determines its vectors (encoder, form, code, libraries) and by its
sentences.  So a build that was killed, or that is run again over a changed file, embeds only the
segments that are not there; and memory does not grow with the file.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import disk_errors, sha256_file, sha256_json, sweep
from pipeline_lib.base.processor import computed_on
from pipeline_lib.engine.protocol import Engine
from pipeline_lib.retrieval.approximate import require_library, write_approximate
from pipeline_lib.retrieval.catalogue import (
    KIND,
    UNFINISHED,
    ApproximateFile,
    Catalogue,
    Contents,
    Storage,
    is_whole,
)
from pipeline_lib.retrieval.documents import GivenDocuments
from pipeline_lib.retrieval.embedders import EncoderReference
from pipeline_lib.retrieval.rows import NewRows, Rows, in_segments
from pipeline_lib.storage.columns import list_column
from pipeline_lib.storage.fingerprint import (
    TRAINING_LIBRARIES,
    code_fingerprint,
    deciding,
    library_versions,
)
from pipeline_lib.storage.shards import (
    Manifest,
    Shard,
    ShardSet,
    read_manifest,
    read_shard,
    schema_of,
    write_manifest,
    write_shard,
)
from pipeline_lib.storage.vectors import pack
from pipeline_lib.students.targets import MEAN, digest_mean, save_mean

SEGMENT_ROWS = 8192


@dataclass(frozen=True)
class Form:
    """How a catalogue keeps its vectors.

    :ivar dimensions: the first so many values are kept; None: all (Kusupati et al. 2022, Matryoshka
        representations, cut the vectors of encoders that were trained for it).
    :ivar mean: what is taken off the encoder's vectors first, float32 (width,); None: nothing.
    :ivar approximate: the kind of approximate index that stands beside them, or None.
    """

    storage: Storage = "float32"
    normalised: bool = False
    dimensions: int | None = None
    mean: np.ndarray | None = None
    approximate: str | None = None


@dataclass
class BuildReport:
    """How many segments and rows were embedded and found, and what rows were left out."""

    computed: int = 0
    reused: int = 0
    rows_computed: int = 0
    rows_reused: int = 0
    left_out: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"computed {self.computed} segments, reused {self.reused}"

    def add(self, shard: Shard, reused: bool) -> None:
        """Count one segment."""
        if reused:
            self.reused, self.rows_reused = self.reused + 1, self.rows_reused + shard.rows
        else:
            self.computed, self.rows_computed = self.computed + 1, self.rows_computed + shard.rows


OnSegment = Callable[[BuildReport], None]


def build(
    folder: Path,
    encoder: EncoderReference,
    batches: Iterable[Rows],
    form: Form,
    engine: Engine,
    device: str = "cpu",
    ids: bool = False,
    segment_rows: int = SEGMENT_ROWS,
    on_segment: OnSegment | None = None,
    given: GivenDocuments | None = None,
) -> tuple[Catalogue, BuildReport]:
    """Make the catalogue of these sentences in ``folder``.

    Empty texts, and rows that equal an earlier one, are left out and counted.  Segments of an
    earlier build that hold the same sentences are kept.

    :param ids: whether the rows have ids.
    :param on_segment: called after each segment.
    :param given: the sentences' vectors, where these stood in files; the encoder is that of the
        queries then.
    :raises DistilleryError: if the folder holds something else, there are no sentences, an id has
        two texts, or one has no vector.
    """
    if form.approximate:
        require_library(form.approximate)
    contents = _contents(encoder, form, ids, device, given)
    folder = Path(folder)
    _refuse_others(folder, contents)
    if form.mean is not None:
        save_mean(folder / MEAN, form.mean)
    writer = _Writer(folder, contents, form.mean, device, given)
    new, report = NewRows(), BuildReport()
    report.left_out = new.left_out
    writer.write(_segments(batches, new, ids, segment_rows), engine, report, on_segment)
    if not writer.shards:
        raise DistilleryError(f"{folder}: no sentences to embed. Give a file that holds some.")
    return writer.finish(new.left_out, form.approximate), report


def add(
    catalogue: Catalogue,
    batches: Iterable[Rows],
    engine: Engine,
    device: str = "cpu",
    encoder: Path | None = None,
    segment_rows: int = SEGMENT_ROWS,
    on_segment: OnSegment | None = None,
    given: GivenDocuments | None = None,
) -> tuple[Catalogue, BuildReport]:
    """Add the sentences that the catalogue does not have: by id, or by text where there are no ids.

    :param encoder: where the encoder of its vectors lies now; None: where it lay.
    :param given: the sentences' vectors, where those of the catalogue stood in files, too.
    :raises DistilleryError: if that is another encoder, or a known id has another text.
    """
    contents = catalogue.contents
    _check_given(contents, given)
    contents = replace(contents, encoder=contents.encoder.found_in(encoder))
    approximate = contents.approximate and contents.approximate.kind
    if approximate:
        require_library(approximate)
    # Loaded here, so that forked workers share it.
    contents.encoder.load(device)
    new, report = NewRows(), BuildReport()
    for texts, ids in catalogue.rows():
        new.take(Rows(texts, ids))
    new.left_out = report.left_out = dict.fromkeys(new.left_out, 0)
    writer = _Writer(catalogue.folder, contents, catalogue.mean, device, given)
    writer.shards += catalogue.shards.manifest.shards
    segments = _segments(batches, new, contents.ids, segment_rows)
    writer.write(segments, engine, report, on_segment)
    return writer.finish(catalogue.shards.manifest.counts, approximate, catalogue), report


def _segments(batches: Iterable[Rows], new: NewRows, ids: bool, size: int) -> Iterator[Rows]:
    def chosen() -> Iterator[Rows]:
        for batch in batches:
            if (batch.ids is not None) != ids:
                raise DistilleryError(
                    "the sentences of the index have "
                    + ("ids, and these have none. Name their column by" if ids else "no ids. Omit")
                    + " `--id`."
                )
            yield new.take(batch)

    return in_segments(chosen(), size)


def _check_given(contents: Contents, given: GivenDocuments | None) -> None:
    """Check that what is added has its vectors from where the catalogue's are.

    :raises DistilleryError: if not.
    """
    if (contents.given is None) != (given is None):
        raise DistilleryError(
            "the index's vectors are its encoder's. Omit `--vectors`."
            if contents.given is None
            else "the index's vectors stood in files. Name those of the new sentences by "
            "`--vectors`."
        )
    if given is None:
        return
    named = [own.get("model") for own in (contents.given, given.vectors.provenance)]
    if None not in named and named[0] != named[1]:
        raise DistilleryError(
            f"--vectors: of model {named[1]}, and the index holds those of {named[0]}. Give "
            "vectors of that one."
        )


def _contents(
    encoder: EncoderReference,
    form: Form,
    ids: bool,
    device: str,
    given: GivenDocuments | None,
) -> Contents:
    """Return what the catalogue will be; loads the encoder, which forked workers then share."""
    width = encoder.load(device).width
    if form.dimensions is not None and not 0 < form.dimensions <= width:
        raise DistilleryError(
            f"dimensions: {form.dimensions}, but the encoder's vectors have {width} values. Set it "
            f"to at most {width}."
        )
    if given is not None and given.width != width:
        raise DistilleryError(
            f"--vectors: {given.width} values each, and the encoder's vectors have {width}. Give "
            "those of the model that the encoder was trained to."
        )
    mean = None if form.mean is None else digest_mean(form.mean)
    if mean and len(form.mean) != width:
        raise DistilleryError(
            f"centre: the mean has {len(form.mean)} values, the encoder's vectors {width}. Give "
            "an encoder that was trained to this model."
        )
    kept = form.dimensions or width
    whence = None if given is None else given.vectors.provenance
    return Contents(*(encoder, width, kept, form.storage, form.normalised, mean, ids), given=whence)


def _refuse_others(folder: Path, contents: Contents) -> None:
    """Check that the folder is empty, or holds a catalogue of the same encoder and form.

    :raises DistilleryError: if not.
    """
    if (folder / "manifest.json").exists():
        held = Catalogue.read(folder).contents.of_vectors
        for name, value in contents.of_vectors.items():
            if held[name] != value:
                raise DistilleryError(
                    f"{folder}: holds an index of another {name} ({held[name]}, not {value}). "
                    "Delete it, or name another folder."
                )
    elif folder.exists() and any(folder.iterdir()) and not (folder / UNFINISHED).exists():
        raise DistilleryError(f"{folder}: holds other files. Name a folder that is empty or new.")


@dataclass(frozen=True)
class _Segment:
    """One segment to embed, or to find.

    :ivar given: the vectors that stood in files; None: the encoder gives them.
    :ivar known: what is said to be there already under its key.
    """

    folder: Path
    contents: Contents
    mean: np.ndarray | None
    device: str
    given: GivenDocuments | None
    rows: Rows
    key: str
    known: Shard | None


class _Writer:
    """Writes the segments of one catalogue, and notes each that is whole."""

    def __init__(
        self,
        folder: Path,
        contents: Contents,
        mean: np.ndarray | None,
        device: str,
        given: GivenDocuments | None,
    ) -> None:
        self.folder, self.contents, self.mean, self.device = folder, contents, mean, device
        self.given = given
        self.shards: list[Shard] = []
        self._libraries = library_versions(*TRAINING_LIBRARIES)
        self._known = {shard.source: shard for shard in _noted(folder)}

    def write(
        self,
        segments: Iterable[Rows],
        engine: Engine,
        report: BuildReport,
        on_segment: OnSegment | None,
    ) -> None:
        """Embed segments, or find them, in their order."""
        # A killed build may have left half a line.
        self._note("\n")
        if self.given is not None:
            encoder = self.contents.encoder.load(self.device)
            segments = self.given.checked(segments, encoder, self.mean)
        jobs = (self._job(rows) for rows in segments)
        for shard, reused in engine.stream(_embed, jobs):
            self.shards.append(shard)
            self._note(f"{json.dumps(asdict(shard))}\n")
            report.add(shard, reused)
            if on_segment:
                on_segment(report)

    def finish(
        self, counts: dict[str, int], approximate: str | None, before: Catalogue | None = None
    ) -> Catalogue:
        """Write the approximate index and the manifest, and delete what no longer belongs.

        :param before: the catalogue that was added to.
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
        own = self.contents.of_vectors
        code = [code_fingerprint(__name__), deciding(self._libraries)]
        given = self.given and self.given.digest
        key = sha256_json([own, code, given, rows.texts, rows.ids])
        place = self.folder, self.contents, self.mean, self.device, self.given
        return _Segment(*place, rows, key, self._known.get(key))

    def _note(self, line: str) -> None:
        # Only ever added to: what is noted twice is the same.
        path = self.folder / UNFINISHED
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "a", encoding="utf-8") as file:
                file.write(line)

    def _manifest(self, counts: dict[str, int]) -> Manifest:
        schema = schema_of(read_shard(self.folder / self.shards[0].name))
        made_from = {"catalogue": asdict(self.contents), "libraries": self._libraries}
        return Manifest(KIND, schema, self.shards, made_from, counts)

    def _write_approximate(
        self, kind: str, manifest: Manifest, before: Catalogue | None
    ) -> ApproximateFile:
        """Write the approximate index under a name of its own: the old one serves until the end."""
        digest = manifest.digest
        path = self.folder / f"approximate-{digest[:12]}.{kind}"
        first, old = (len(before), before.approximate_path) if before else (0, None)
        added = (
            replace(manifest, shards=self.shards[len(before.shards.manifest.shards) :])
            if (before)
            else manifest
        )
        blocks = Catalogue(ShardSet(self.folder, added), self.contents).blocks()
        numbered = ((first + start, vectors) for start, vectors in blocks)
        if not (before and first == manifest.rows):
            write_approximate(kind, path, numbered, self.contents.width, old)
        return ApproximateFile(kind, path.name, path.stat().st_size, sha256_file(path), digest)


def _noted(folder: Path) -> Iterator[Shard]:
    """Yield the segments of an earlier build, finished or not, as far as their notes are whole."""
    found: list[Any] = []
    if (folder / "manifest.json").exists():
        found += [asdict(shard) for shard in read_manifest(folder).shards]
    if (folder / UNFINISHED).exists():
        found += (folder / UNFINISHED).read_text("utf-8", errors="replace").split("\n")
    for note in found:
        # The last line may have been cut off.
        with suppress(ValueError, TypeError):
            yield Shard(**(json.loads(note) if isinstance(note, str) else note))


def _embed(job: _Segment) -> tuple[Shard, bool]:
    """Embed one segment, unless its file is there and whole; return it, and whether it was."""
    path = job.folder / f"{job.key[:16]}.arrow"
    if job.known is not None and is_whole(path, job.known):
        return job.known, True
    own = job.contents
    embedder = job.given or own.encoder.load(job.device)
    vectors = own.shaped(embedder.encode(job.rows.texts), job.mean)
    stored, scale = pack(vectors, own.storage)
    columns = {"text": pa.array(job.rows.texts, pa.large_string()), "vector": list_column(stored)}
    if scale is not None:
        columns["scale"] = pa.array(scale)
    if job.rows.ids is not None:
        columns["id"] = pa.array(job.rows.ids, pa.large_string())
    shard = write_shard(path, pa.table(columns), job.key)
    return replace(shard, computed_on=computed_on(job.device)), False
