"""``distill index``: builds, extends and describes a searchable index of sentence vectors."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import fresh_folder
from pipeline_lib.base.terminal import say
from pipeline_lib.commands.options import Device, Encoding, FormatOption, Index, Quoted, input_path, read_options

if TYPE_CHECKING:
    from pipeline_lib.retrieval.catalogue import Catalogue
    from pipeline_lib.retrieval.documents import GivenDocuments
    from pipeline_lib.retrieval.embedders import EncoderReference
    from pipeline_lib.retrieval.segments import BuildReport
    from pipeline_lib.retrieval.sentence_rows import Rows
    from pipeline_lib.shards.engine.local import LocalEngine
    from pipeline_lib.tables.reader import ReadOptions

app = typer.Typer(no_args_is_help=True, help="Build, extend and describe an index of sentences for `distill search`.")
REPORT_SECONDS = 5.0


class Storage(StrEnum):
    """Number formats of stored vectors; int8 has a scale per vector."""

    float32 = "float32"
    float16 = "float16"
    int8 = "int8"


class Pooling(StrEnum):
    """How a transformers model's hidden states become a sentence vector."""

    cls = "cls"
    mean = "mean"
    pooler = "pooler"


class Approximate(StrEnum):
    """Libraries for approximate search, both optional extras."""

    usearch = "usearch"
    faiss = "faiss"


File = Annotated[Path, Argument(help="Sentences: a file, a shard set's folder, or - for standard input.")]
TextColumn = Annotated[str, Option("--text", help="Column or JSON key of the sentences.")]
Id = Annotated[str | None, Option("--id", help="Column or JSON key of their ids; by default, no ids.")]
Vectors = Annotated[
    list[Path] | None, Option("--vectors", help="Files with the sentences' vectors: `text`, `embedding`; repeatable.")
]
SegmentRows = Annotated[
    int | None, Option("--segment-rows", min=1, help="Rows per file, 8192 by default; more suit many millions.")
]
Workers = Annotated[int | None, Option("--workers", min=1, help="Processes; by default one per core.")]


@app.command("build", epilog="Example: distill index build data/mine sentences.txt --encoder data/encoders/sra")
def build(
    index: Index,
    file: File,
    encoder: Annotated[Path | None, Option(help="Folder of an encoder or a student.")] = None,
    model: Annotated[Path | None, Option(help="Or the folder of a transformers model.")] = None,
    pooling: Annotated[Pooling, Option(help="How the model's states are pooled.")] = Pooling.mean,
    max_length: Annotated[
        int | None, Option(min=4, help="Word pieces the model reads; by default 128, or as with --centre's encoder.")
    ] = None,
    vectors: Vectors = None,
    centre: Annotated[Path | None, Option(help="Subtract the mean of this encoder's targets.")] = None,
    storage: Annotated[
        Storage, Option(help="Number format of the vectors; float32 for `search --by student`.")
    ] = Storage.float16,
    normalise: Annotated[bool, Option("--normalise", help="Scale vectors to length 1.")] = False,
    dimensions: Annotated[int | None, Option(help="Keep only this many leading values of each vector.")] = None,
    approximate: Annotated[Approximate | None, Option(help="Add an approximate index.")] = None,
    text: TextColumn = "text",
    ids: Id = None,
    reads: FormatOption = None,
    encoding: Encoding = None,
    quoted: Quoted = None,
    segment_rows: SegmentRows = None,
    device: Device = "auto",
    workers: Workers = None,
) -> None:
    """Embed the sentences of a file into an index: vectors, texts and ids.

    With --vectors, the sentences' vectors come from files, and --encoder, trained on such vectors,
    embeds the queries. Empty and repeated sentences are left out. If killed, run it again: it
    resumes after the last complete segment. Run on a changed file, it embeds only what changed.
    """
    from pipeline_lib.models.students.vector_targets import Targets
    from pipeline_lib.retrieval.building import SEGMENT_ROWS, Form, build
    from pipeline_lib.retrieval.documents import targets_in_files
    from pipeline_lib.retrieval.embedders import EncoderReference, targets_in_space

    if (encoder is None) == (model is None):
        raise PotstillError("give either `--encoder` or `--model`, to embed the sentences.")
    mean = None
    if model is None:
        if centre is not None:
            raise PotstillError("centre: only a model's vectors are centred. Give `--model`.")
        reference = EncoderReference.to(encoder)
        mean = targets_in_files(encoder).mean if vectors else None
    elif vectors:
        raise PotstillError("vectors: the queries are embedded by `--encoder`. Give it, not `--model`.")
    else:
        if centre is not None and max_length is None:
            max_length = Targets.read(centre).max_length
        reference = EncoderReference.to(model, pooling.value, max_length)
    if centre is not None:
        mean = targets_in_space(centre, reference).mean
        if mean is None:
            raise PotstillError(f"{centre}: its targets are not centred. Omit `--centre`.")
    settings = Form(storage.value, normalise, dimensions, mean, approximate and approximate.value)
    where, engine = _engine(device, workers)
    rows = _rows(file, read_options(reads, encoding, quoted), text, ids)
    with _given(vectors, index) as documents:
        catalogue, report = build(
            index, reference, rows, settings, engine, where,
            ids=ids is not None, segment_rows=segment_rows or SEGMENT_ROWS,
            on_segment=_progress(), documents=documents,
        )  # fmt: skip
    _say_done(catalogue, report)


@app.command("add", epilog="Example: distill index add data/mine more.txt")
def add(
    index: Index,
    file: File,
    encoder: Annotated[Path | None, Option(help="The index's encoder, if it was moved.")] = None,
    vectors: Vectors = None,
    text: TextColumn = "text",
    ids: Id = None,
    reads: FormatOption = None,
    encoding: Encoding = None,
    quoted: Quoted = None,
    segment_rows: SegmentRows = None,
    device: Device = "auto",
    workers: Workers = None,
) -> None:
    """Add the sentences that an index does not have yet, told apart by id, or else by text."""
    from pipeline_lib.retrieval.building import SEGMENT_ROWS, add
    from pipeline_lib.retrieval.catalogue import Catalogue

    where, engine = _engine(device, workers)
    rows = _rows(file, read_options(reads, encoding, quoted), text, ids)
    with _given(vectors, index) as documents:
        catalogue, report = add(
            Catalogue.open(index), rows, engine, where, encoder,
            segment_rows=segment_rows or SEGMENT_ROWS, on_segment=_progress(), documents=documents,
        )  # fmt: skip
    _say_done(catalogue, report)


@app.command("info", epilog="Example: distill index info data/mine")
def info(index: Index) -> None:
    """Describe an index: what it contains, which encoder made it, and whether that still exists."""
    from pipeline_lib.retrieval.catalogue import Catalogue

    for name, value in _facts(Catalogue.open(index)):
        say(f"{name:<12} {value}")


def _facts(catalogue: "Catalogue") -> Iterator[tuple[str, str]]:
    from pipeline_lib.commands.shards import size_text

    contents, manifest = catalogue.contents, catalogue.shards.manifest
    size = size_text(sum(shard.bytes for shard in manifest.shards))
    yield "rows", f"{len(catalogue):,} in {len(manifest.shards):,} segments, {size}"
    cut = f", cut from {contents.encoder_width}" if contents.width < contents.encoder_width else ""
    yield "vectors", f"{contents.width} values{cut}, {contents.storage}"
    yield "length", "1 (normalised)" if contents.normalised else "as the encoder returns it"
    yield "centred", f"mean {contents.mean[:12]} subtracted" if contents.mean else "no"
    yield "ids", "given" if contents.ids else "none: rows are identified by their texts"
    pooled = f", pooling {contents.encoder.pooling}, {contents.encoder.max_length} word pieces"
    yield "encoder", f"{contents.encoder.folder}{pooled if contents.encoder.pooling else ''}"
    yield "", f"digest {contents.encoder.digest[:12]}: {_presence(contents.encoder)}"
    if contents.given is not None:
        provenance = ", ".join(f"{name} {value}" for name, value in contents.given.items())
        yield "documents", f"vectors from files{': ' if provenance else ''}{provenance}"
    approximate = contents.approximate
    yield ("approximate", f"{approximate.kind}, {size_text(approximate.bytes)}" if approximate else "none")
    yield "left out", ", ".join(f"{n:,} {why}" for why, n in manifest.counts.items())
    yield "format", f"{contents.version}, digest {manifest.digest[:12]}"


def _presence(encoder: "EncoderReference") -> str:
    try:
        encoder.found_in()
    except PotstillError:
        exists = (Path(encoder.folder) / "config.json").exists()
        return "a different one is there now" if exists else "no longer there"
    return "it is there"


@contextmanager
def _given(files: Sequence[Path] | None, index: Path) -> "Iterator[GivenDocuments | None]":
    """Yield the vectors of files, kept in a folder beside the index until the block ends.

    The folder always has the same name, so the next build clears what a killed one left.
    """
    if not files:
        yield None
        return
    from pipeline_lib.outputs.files.gathering import gather
    from pipeline_lib.outputs.files.vector_files import Vectors
    from pipeline_lib.retrieval.documents import GivenDocuments

    folder = fresh_folder(index.parent / f".{index.name}.vectors")
    try:
        gather(files, Vectors.by_default(), folder)
        yield GivenDocuments.gathered(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _engine(device: str, workers: int | None) -> "tuple[str, LocalEngine]":
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.base.processor import usable_cores
    from pipeline_lib.shards.engine.local import LocalEngine, accelerators

    resolved = str(resolve_device(device))
    if resolved != "cpu":
        return resolved, LocalEngine.on(accelerators(resolved))
    return resolved, LocalEngine(workers or usable_cores())


def _rows(file: Path, options: "ReadOptions", text: str, ids: str | None) -> "Iterator[Rows]":
    from pipeline_lib.retrieval.sentence_rows import read_rows

    source = input_path(file)
    if source is not None and not source.exists():
        raise PotstillError(f"{file}: not found. Give a file of sentences.")
    return read_rows(source, text, ids, options)


def _progress() -> "Callable[[BuildReport], None]":
    start = last = time.monotonic()

    def on_segment(report: "BuildReport") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_SECONDS:
            last = now
            rate = report.rows_computed / (now - start)
            rows = report.rows_computed + report.rows_reused
            say(f"{rows:,} sentences, {rate:,.0f} embedded per second", err=True)

    return on_segment


def _say_done(catalogue: "Catalogue", report: "BuildReport") -> None:
    left = ", ".join(f"{count:,} {why}" for why, count in report.left_out.items())
    before = "" if report.before is None else f" ({report.before:,} before)"
    rows = f"{len(catalogue):,} sentences{before}"
    say(f"{catalogue.folder}: {rows}; {report}; left out: {left}")
    if report.unknown:
        say(
            f"sentences without a word that the encoder knows: {report.unknown:,} of "
            f"{report.rows_computed:,}. No query finds them for what they say",
            err=True,
        )
