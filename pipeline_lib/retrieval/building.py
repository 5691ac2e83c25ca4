"""Building a catalogue, and adding to it.

It is written segment by segment: if a build was killed, or is run again on a changed file, it
embeds only the missing segments; and memory does not grow with the file.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sole_writer
from pipeline_lib.models.students.vector_targets import MEAN, digest_mean, save_mean
from pipeline_lib.retrieval.approximate import require_library
from pipeline_lib.retrieval.catalogue import UNFINISHED, Catalogue, Contents, Storage
from pipeline_lib.retrieval.documents import GivenDocuments
from pipeline_lib.retrieval.embedders import EncoderReference
from pipeline_lib.retrieval.new_rows import NewRows
from pipeline_lib.retrieval.segments import BuildReport, OnSegment, SegmentWriter
from pipeline_lib.retrieval.sentence_rows import Rows, in_segments
from pipeline_lib.shards.engine.protocol import Engine

SEGMENT_ROWS = 8192


@dataclass(frozen=True)
class Form:
    """How a catalogue stores its vectors.

    :ivar dimensions: how many of the first values are kept; None: all (Kusupati et al. 2022,
        Matryoshka representations, truncate the vectors of encoders that were trained for it).
    :ivar mean: subtracted from the encoder's vectors first, float32 (width,); None: nothing.
    :ivar approximate: the kind of approximate index stored with them, or None.
    """

    storage: Storage = "float32"
    normalised: bool = False
    dimensions: int | None = None
    mean: np.ndarray | None = None
    approximate: str | None = None


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
    documents: GivenDocuments | None = None,
) -> tuple[Catalogue, BuildReport]:
    """Build the catalogue of these sentences in ``folder``.

    Empty texts, and rows that equal an earlier one, are left out and counted.  Segments of an
    earlier build with the same sentences are kept.

    :param ids: whether the rows have ids.
    :param on_segment: called after each segment.
    :param documents: the sentences' vectors, if these came from files; then the encoder only embeds the queries.
    """
    if form.approximate:
        require_library(form.approximate)
    folder = Path(folder)
    with sole_writer(folder):
        before = _catalogue_in(folder)
        encoder = encoder.in_precision(before and before.contents.encoder, device)
        contents = _contents(encoder, form, ids, device, documents)
        if before is not None:
            _refuse_another(before, contents)
        if form.mean is not None:
            save_mean(folder / MEAN, form.mean)
        writer = SegmentWriter(folder, contents, form.mean, device, documents)
        new, report = NewRows(), BuildReport(before=before and len(before))
        report.left_out = new.left_out
        writer.write(_segments(batches, new, ids, segment_rows), engine, report, on_segment)
        if not writer.shards:
            raise PotstillError(f"{folder}: no sentences to embed. Give a file that has some.")
        return writer.finish(new.left_out, form.approximate, before), report


def add(
    catalogue: Catalogue,
    batches: Iterable[Rows],
    engine: Engine,
    device: str = "cpu",
    encoder: Path | None = None,
    segment_rows: int = SEGMENT_ROWS,
    on_segment: OnSegment | None = None,
    documents: GivenDocuments | None = None,
) -> tuple[Catalogue, BuildReport]:
    """Add the sentences that the catalogue does not have: by id, or by text if there are no ids.

    :param encoder: the current folder of the encoder of its vectors; None: unchanged.
    :param documents: the sentences' vectors, if those of the catalogue came from files too.
    """
    with sole_writer(catalogue.folder):
        # Another process may have added to it since it was opened.
        catalogue = Catalogue.open(catalogue.folder)
        contents = catalogue.contents
        _check_given(contents, documents)
        contents = replace(contents, encoder=contents.encoder.found_in(encoder))
        approximate = contents.approximate and contents.approximate.kind
        if approximate:
            require_library(approximate)
        # Loaded here, so that forked workers share it.
        contents.encoder.load(device)
        new, report = NewRows(), BuildReport(before=len(catalogue))
        for texts, ids in catalogue.rows():
            new.take(Rows(texts, ids))
        new.left_out = report.left_out = dict.fromkeys(new.left_out, 0)
        writer = SegmentWriter(catalogue.folder, contents, catalogue.mean, device, documents)
        writer.shards += catalogue.shards.manifest.shards
        segments = _segments(batches, new, contents.ids, segment_rows)
        writer.write(segments, engine, report, on_segment)
        return writer.finish(catalogue.shards.manifest.counts, approximate, catalogue), report


def _segments(batches: Iterable[Rows], new: NewRows, ids: bool, size: int) -> Iterator[Rows]:
    def chosen() -> Iterator[Rows]:
        for batch in batches:
            if (batch.ids is not None) != ids:
                raise PotstillError(
                    "the sentences of the index have "
                    + ("ids, but these have none. Name their column by" if ids else "no ids. Omit")
                    + " `--id`."
                )
            yield new.take(batch)

    return in_segments(chosen(), size)


def _check_given(contents: Contents, documents: GivenDocuments | None) -> None:
    """Check that the new sentences' vectors are from the same origin as the catalogue's."""
    if (contents.given is None) != (documents is None):
        raise PotstillError(
            "the index's vectors are its encoder's. Omit `--vectors`."
            if contents.given is None
            else "the index's vectors came from files. Name those of the new sentences by `--vectors`."
        )
    if documents is None:
        return
    named = [provenance.get("model") for provenance in (contents.given, documents.vectors.provenance)]
    if None not in named and named[0] != named[1]:
        raise PotstillError(
            f"--vectors: of model {named[1]}, but the index holds those of {named[0]}. Give vectors of that one."
        )


def _contents(
    encoder: EncoderReference, form: Form, ids: bool, device: str, documents: GivenDocuments | None
) -> Contents:
    """Return the catalogue's description; loads the encoder, which forked workers then share."""
    width = encoder.load(device).width
    if form.dimensions is not None and not 0 < form.dimensions <= width:
        raise PotstillError(
            f"dimensions: {form.dimensions}, but the encoder's vectors have {width} values. Set it to at most {width}."
        )
    if documents is not None and documents.width != width:
        raise PotstillError(
            f"--vectors: {documents.width} values each, but the encoder's vectors have {width}. "
            "Give those of the model that the encoder was trained on."
        )
    mean = None if form.mean is None else digest_mean(form.mean)
    if mean and len(form.mean) != width:
        raise PotstillError(
            f"centre: the mean has {len(form.mean)} values, the encoder's vectors {width}. Give "
            "an encoder that was trained on this model's vectors."
        )
    kept = form.dimensions or width
    whence = None if documents is None else documents.vectors.provenance
    return Contents(encoder, width, kept, form.storage, form.normalised, mean, ids, given=whence)


def _catalogue_in(folder: Path) -> Catalogue | None:
    """Return the finished catalogue in a folder, or None if that is empty or an unfinished build's."""
    if (folder / "manifest.json").exists():
        return Catalogue.read(folder)
    if any(folder.iterdir()) and not (folder / UNFINISHED).exists():
        raise PotstillError(f"{folder}: holds other files. Name a folder that is empty or new.")
    return None


def _refuse_another(catalogue: Catalogue, contents: Contents) -> None:
    """Check that a catalogue has the same encoder and form."""
    held = catalogue.contents.of_vectors
    for name, value in contents.of_vectors.items():
        if held[name] != value:
            raise PotstillError(
                f"{catalogue.folder}: holds an index of another {name} ({held[name]}, not "
                f"{value}). Delete it, or name another folder."
            )
