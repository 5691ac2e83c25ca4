"""What an index of sentences costs: build time, size, query latency, and the recall of each form.

Claim: two cores suffice to embed sentences and to search them exactly; float16 and int8 lose hardly
any of the ten nearest, and a truncated or approximate index loses what the table says.

    python benchmarks/sentence_index.py data/wikipedia/train --encoder data/encoders/sra
    python benchmarks/sentence_index.py sentences.txt --encoder data/encoders/sra --drawn 1000000

The file's sentences are embedded into a float32 catalogue, except some that are kept as queries.
With `--drawn N`, N vectors replace it: each is the vector of a random sentence of the file plus
Gaussian noise with a quarter of each value's standard deviation; their texts are meaningless.  The
other forms are written from the same vectors.  Recall is the share of the ten nearest of the exact
float32 search that a form finds.  Latency is that of a search with given query vectors; embedding
the queries is timed separately.  usearch and faiss are included if they are installed.

Writes benchmarks/results/NAME.{json,md}.
"""

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import torch
import typer
from harness import (
    RESULTS,
    Name,
    Out,
    Repeats,
    facts,
    folder_bytes,
    peak_mib,
    reason,
    say,
    seconds,
    summary,
    table,
    take_turns,
    write_results,
)
from pipeline_lib.retrieval.building import Form, build
from pipeline_lib.retrieval.catalogue import Catalogue
from pipeline_lib.retrieval.top_k import best

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.threads import usable_cores
from pipeline_lib.retrieval.approximate import KINDS, open_approximate, write_approximate
from pipeline_lib.retrieval.embedders import EncoderReference
from pipeline_lib.retrieval.scoring import CosineScorer
from pipeline_lib.retrieval.sentence_rows import Rows, read_rows
from pipeline_lib.shards.columns import list_column
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import ShardSet, write_manifest, write_shard
from pipeline_lib.shards.vectors import pack

K, SIZES = 10, (1, 32)
CANDIDATES = 100
"""Candidates from an approximate index, to be rescored."""
ROWS = 16384
Blocks = Iterator[tuple[int, np.ndarray]]
Find = Callable[[np.ndarray], np.ndarray]


def main(
    file: Annotated[Path, typer.Argument(help="Sentences: a file, or a shard set's folder.")],
    encoder: Annotated[Path, typer.Option(help="Folder of an encoder.")],
    text: Annotated[str, typer.Option(help="The column of the sentences.")] = "text",
    rows: Annotated[int | None, typer.Option(help="Maximum number of sentences.")] = None,
    drawn: Annotated[int | None, typer.Option(help="How many vectors to draw near the sentences'.")] = None,
    queries: Annotated[int, typer.Option(help="Sentences kept as queries.")] = 200,
    repeats: Repeats = 5,
    name: Name = "catalogue",
    out: Out = RESULTS,
) -> None:
    """Measure and write the results."""
    versions = ("torch", "numpy", "pyarrow", "usearch", "faiss-cpu")
    fact = facts(versions, usable_cores(), torch.get_num_threads())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        exact, kept, built = _build(file, text, encoder, rows, queries, folder)
        embedder = EncoderReference.to(encoder).load()
        vectors = embedder.encode(kept)
        if drawn:
            exact = _write(folder / "drawn", exact, _drawn(exact, drawn), "float32", None)
        forms = _compare(exact, vectors, repeats, folder)
    embedding = {size: 1000 * seconds(lambda s=size: embedder.encode(kept[:s])) for size in SIZES}
    results = {
        **{"facts": fact, "encoder": encoder.name, "file": file.name, "built": built},
        **{"rows": len(exact), "width": exact.contents.width, "drawn": bool(drawn)},
        **{"queries": len(kept), "embedding_ms": embedding, "forms": forms},
    }
    write_results(name, results, _lines(results), out)


def _build(
    file: Path, text: str, encoder: Path, rows: int | None, queries: int, folder: Path
) -> tuple[Catalogue, list[str], dict[str, Any]]:
    """Embed the sentences without the queries; return the catalogue, the queries and the rates."""
    reference, kept = EncoderReference.to(encoder), []

    def batches() -> Iterator[Rows]:
        left = rows
        for batch in read_rows(file, text=text):
            texts = batch.texts[:left]
            left = None if left is None else left - len(texts)
            # The first of each batch until there are enough: queries are spread over a long file.
            taken = min(queries - len(kept), max(1, queries // 4))
            kept.extend(texts[:taken])
            yield Rows(texts[taken:])
            if left == 0:
                return

    start = time.monotonic()
    engine = LocalEngine(usable_cores())
    catalogue, _ = build(folder / "exact", reference, batches(), Form("float32"), engine)
    seconds = time.monotonic() - start
    rate = round(len(catalogue) / seconds, 1)
    say(f"built {len(catalogue):,} sentences in {seconds:.1f} s")
    peak = peak_mib(resource.RUSAGE_SELF), peak_mib(resource.RUSAGE_CHILDREN)
    record = {"sentences": len(catalogue), "seconds": round(seconds, 1), "sentences_per_second": rate}
    return catalogue, kept, record | {"peak_mib": peak[0], "peak_mib_of_a_worker": peak[1]}


def _drawn(catalogue: Catalogue, rows: int) -> Blocks:
    """Yield vectors near those of the catalogue: random rows with noise added."""
    draw = np.random.default_rng(1)
    some = catalogue.vectors[np.sort(draw.choice(len(catalogue), min(ROWS, len(catalogue)), False))]
    noise = some.std(0) / 4
    for start in range(0, rows, ROWS):
        size = min(ROWS, rows - start)
        chosen = catalogue.vectors[draw.integers(0, len(catalogue), size)]
        yield start, (chosen + draw.normal(size=chosen.shape) * noise).astype(np.float32)


def _write(folder: Path, like: Catalogue, blocks: Blocks, storage: Any, width: int | None) -> Catalogue:
    """Write vectors as a catalogue in another form, with row numbers as texts."""
    contents = replace(like.contents, storage=storage, width=width or like.contents.width)
    shards = []
    for start, vectors in blocks:
        stored, scale = pack(vectors[:, : contents.width], storage)
        columns = {"text": pa.array(map(str, range(start, start + len(vectors))), pa.large_string())}
        columns |= {"vector": list_column(stored)} | ({} if scale is None else {"scale": pa.array(scale)})
        shards.append(write_shard(folder / f"{start:09d}.arrow", pa.table(columns)))
    manifest = replace(like.shards.manifest, shards=shards)
    write_manifest(folder, manifest)
    return Catalogue(ShardSet(folder, manifest), contents)


def _compare(exact: Catalogue, queries: np.ndarray, repeats: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Return bytes, recall and latencies of every form."""
    width = exact.contents.width
    forms = {"float32": exact}
    for storage in ("float16", "int8"):
        forms[storage] = _write(folder / storage, exact, exact.blocks(ROWS), storage, None)
    for part in (2, 4):
        name = f"first {width // part} values, float16"
        blocks = exact.blocks(ROWS)
        forms[name] = _write(folder / f"cut{part}", exact, blocks, "float16", width // part)
    finds: dict[str, Find] = {name: _exactly(catalogue) for name, catalogue in forms.items()}
    results = {name: {"bytes": folder_bytes(catalogue.folder)} for name, catalogue in forms.items()}
    for kind in KINDS:
        path, name = folder / f"approximate.{kind}", f"{kind}, {CANDIDATES} scored in float16"
        try:
            taken = seconds(lambda k=kind, p=path: write_approximate(k, p, exact.blocks(ROWS), width))
        except PotstillError as error:
            results[name] = {"failed": reason(error)}
            continue
        index = {"bytes": path.stat().st_size, "seconds": round(taken, 1)}
        finds[name] = _approximately(kind, path, forms["float16"])
        results[name] = {"bytes": results["float16"]["bytes"] + index["bytes"], "index": index}
        say(f"{name}: {index}")
    wanted = finds["float32"](queries)
    for name, find in finds.items():
        shared = [np.isin(*rows).sum() for rows in zip(find(queries), wanted, strict=True)]
        results[name]["recall"] = round(float(np.mean(shared)) / wanted.shape[1], 4)
    for size in SIZES:
        turns = {n: lambda f=f, s=size: 1000 * seconds(lambda: f(queries[:s])) for n, f in finds.items()}
        for name, values in take_turns(turns, repeats).items():
            results[name][f"ms_{size}"] = summary(values, 2)
    return results


def _exactly(catalogue: Catalogue) -> Find:
    width = catalogue.contents.width
    return lambda queries: best(CosineScorer(), queries[:, :width], catalogue.blocks(), K)[1]


def _approximately(kind: str, path: Path, catalogue: Catalogue) -> Find:
    index = open_approximate(kind, path)

    def find(queries: np.ndarray) -> np.ndarray:
        nearest = []
        for query, rows in zip(queries, index.candidates(queries, CANDIDATES), strict=True):
            rows = np.sort(rows)
            blocks = [(0, catalogue.vectors[rows])]
            nearest.append(rows[best(CosineScorer(), query[None], blocks, K)[1][0]])
        return np.stack(nearest)

    return find


def _lines(results: dict[str, Any]) -> list[str]:
    def cells(name: str, form: dict[str, Any]) -> list[str]:
        if "failed" in form:
            return [name, "–", "–", *["–"] * len(SIZES)]
        ms = [f"{form[f'ms_{size}']['median']:,.1f}" for size in SIZES]
        return [name, f"{form['bytes'] / 2**20:,.1f}", f"{100 * form['recall']:.1f}", *ms]

    built, embedding = results["built"], results["embedding_ms"]
    header = ["vectors", "MiB, texts too", f"recall@{K}, %"]
    header += [f"ms, {size} quer{'y' if size == 1 else 'ies'}" for size in SIZES]
    what = f"{results['rows']:,} vectors of {results['width']} values"
    if results["drawn"]:
        what += (
            f", each drawn near that of one of {built['sentences']:,} sentences (Gaussian noise of "
            "a quarter of each value's standard deviation)"
        )
    built_as = [
        f"{name}: its index alone {form['index']['bytes'] / 2**20:,.1f} MiB, made in {form['index']['seconds']:,} s."
        for name, form in results["forms"].items()
        if "index" in form
    ]
    failed = [f"{n}: {form['failed']}" for n, form in results["forms"].items() if "failed" in form]
    return [
        "# An index of sentences: cost of building, of queries, and of smaller forms",
        "",
        f"{what} (`{results['encoder']}`), {results['queries']} queries that are not among them. Recall against the "
        f"exact search in float32. Embedding and writing the {built['sentences']:,} sentences took "
        f"{built['seconds']:,} s, {built['sentences_per_second']:,.0f} sentences per second, with "
        f"{built['peak_mib']:,.0f} MiB at its peak and {built['peak_mib_of_a_worker']:,.0f} in a worker. Embedding a "
        f"query takes {embedding[1]:.1f} ms, 32 of them {embedding[32]:.1f}; the search's latency is without it.",
        "",
        *table(header, [cells(name, form) for name, form in results["forms"].items()]),
        "",
        *built_as,
        *failed,
    ]


if __name__ == "__main__":
    typer.run(main)
