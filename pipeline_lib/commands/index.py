"""``distill index``: embeds the sentences of a file into an index for ``distill search``."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.terminal import say
from pipeline_lib.commands.options import Device, Encoding, FormatOption, Index, Quoted, input_path, read_options
from pipeline_lib.params.retrieval import Pooling

if TYPE_CHECKING:
    from pipeline_lib.shards.engine.local import LocalEngine
    from pipeline_lib.shards.engine.passes import PassStats

EXAMPLE = "Example: distill index data/mine sentences.txt --encoder data/encoders/sra"
REPORT_SECONDS = 5.0


def index(
    index: Index,
    file: Annotated[Path, Argument(help="Sentences: a file, a shard set's folder, or - for standard input.")],
    encoder: Annotated[Path | None, Option(help="Folder of an encoder or a student.")] = None,
    model: Annotated[Path | None, Option(help="Or the folder of a transformers model.")] = None,
    pooling: Annotated[Pooling, Option(help="How the model's states are pooled.")] = "mean",
    max_length: Annotated[int | None, Option(min=4, help="Word pieces the model reads; by default 128.")] = None,
    approximate: Annotated[Literal["usearch"] | None, Option(help="Add an approximate index.")] = None,
    text: Annotated[str, Option("--text", help="Column or JSON key of the sentences.")] = "text",
    ids: Annotated[str | None, Option("--id", help="Column or JSON key of their ids; by default, no ids.")] = None,
    reads: FormatOption = None,
    encoding: Encoding = None,
    quoted: Quoted = None,
    device: Device = "auto",
    workers: Annotated[int | None, Option("--workers", min=1, help="Processes; by default one per core.")] = None,
) -> None:
    """Embed the sentences of a file into an index: vectors, texts and ids.

    Empty and repeated sentences are left out. If killed, or if the file has changed, run it again: it embeds only
    what is missing.
    """
    from pipeline_lib.commands.sentences import read_rows
    from pipeline_lib.retrieval.embedders import EncoderReference, IndexPass
    from pipeline_lib.retrieval.index import build

    if (encoder is None) == (model is None):
        raise PotstillError("give either `--encoder` or `--model`, to embed the sentences.")
    reference = EncoderReference.to(model, pooling, max_length) if model else EncoderReference.to(encoder)
    source = input_path(file)
    if source is not None and not source.exists():
        raise PotstillError(f"{file}: not found. Give a file of sentences.")
    where, engine = _engine(device, workers)
    rows = read_rows(source, text, ids, read_options(reads, encoding, quoted))
    made, stats = build(index, IndexPass.of(reference, where), rows, engine, bool(approximate), _progress())
    counts = made.shards.manifest.counts
    left_out = f"left out: {counts['empty']:,} empty, {counts['repeated']:,} repeated"
    say(f"{index}: {len(made):,} sentences; {stats}; {left_out}")
    if counts["unknown"]:
        say(
            f"sentences without a word that the encoder knows: {counts['unknown']:,} of {len(made):,}. "
            "No query finds them for what they say",
            err=True,
        )


def _engine(device: str, workers: int | None) -> "tuple[str, LocalEngine]":
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.base.processor import usable_cores
    from pipeline_lib.shards.engine.local import LocalEngine, accelerators

    resolved = str(resolve_device(device))
    if resolved != "cpu":
        return resolved, LocalEngine.on(accelerators(resolved))
    return resolved, LocalEngine(workers or usable_cores())


def _progress() -> "Callable[[PassStats], None]":
    start = last = time.monotonic()

    def on_block(stats: "PassStats") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_SECONDS:
            last = now
            rate = stats.rows_computed / (now - start)
            say(f"{stats.rows_computed + stats.rows_reused:,} sentences, {rate:,.0f} embedded per second", err=True)

    return on_block
