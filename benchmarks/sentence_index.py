"""What an index of sentences costs: build time, size, query latency, and the recall of approximate search.

Claim: two cores suffice to embed sentences and to search them exactly; an approximate index loses what the table says.

    python benchmarks/sentence_index.py data/wikipedia/train --encoder data/encoders/sra

The file's sentences are embedded into an index, except some that are kept as queries.  Recall is the share of the ten
nearest of the exact search that an approximate one finds.  Latency is that of a search with given query vectors;
embedding the queries is timed separately.  usearch is included if it is installed.

Writes benchmarks/results/NAME.{json,md}.
"""

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
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

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.retrieval.approximate import open_approximate, write_approximate
from pipeline_lib.retrieval.embedders import EncoderReference, IndexPass
from pipeline_lib.retrieval.index import Index, build
from pipeline_lib.retrieval.scoring import CosineScorer, best
from pipeline_lib.retrieval.sentence_rows import Rows
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import ShardSet

K, SIZES, BATCH_ROWS = 10, (1, 32), 8192
CANDIDATES = 100
"""Candidates from an approximate index, to be rescored."""
Find = Callable[[np.ndarray], np.ndarray]


def main(
    file: Annotated[Path, typer.Argument(help="Sentences: a shard set's folder.")],
    encoder: Annotated[Path, typer.Option(help="Folder of an encoder.")],
    text: Annotated[str, typer.Option(help="The column of the sentences.")] = "text",
    rows: Annotated[int | None, typer.Option(help="Maximum number of sentences.")] = None,
    queries: Annotated[int, typer.Option(help="Sentences kept as queries.")] = 200,
    repeats: Repeats = 5,
    name: Name = "catalogue",
    out: Out = RESULTS,
) -> None:
    """Measure and write the results."""
    versions = ("torch", "numpy", "pyarrow", "usearch")
    fact = facts(versions, usable_cores(), torch.get_num_threads())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        exact, texts, built = _build(file, text, encoder, rows, queries, folder)
        embedder = EncoderReference.to(encoder).load()
        vectors = embedder.encode(texts)
        forms = _compare(exact, vectors, repeats, folder)
    embedding = {size: 1000 * seconds(lambda s=size: embedder.encode(texts[:s])) for size in SIZES}
    results = {
        **{"facts": fact, "encoder": encoder.name, "file": file.name, "built": built},
        **{"rows": len(exact), "width": vectors.shape[1]},
        **{"queries": len(texts), "embedding_ms": embedding, "forms": forms},
    }
    write_results(name, results, _lines(results), out)


def _build(
    file: Path, text: str, encoder: Path, rows: int | None, queries: int, folder: Path
) -> tuple[Index, list[str], dict[str, Any]]:
    """Embed the sentences without the queries; return the index, the queries and the rates."""
    reference, held_back = EncoderReference.to(encoder), []

    def batches() -> Iterator[Rows]:
        left = rows
        tables = ShardSet.open(file).tables()
        for batch in (rows for shard in tables for rows in shard.to_batches(BATCH_ROWS)):
            texts = batch[text].to_pylist()[:left]
            left = None if left is None else left - len(texts)
            # The first of each batch until there are enough: queries are spread over a long file.
            taken = min(queries - len(held_back), max(1, queries // 4))
            held_back.extend(texts[:taken])
            yield Rows(texts[taken:])
            if left == 0:
                return

    start = time.monotonic()
    engine = LocalEngine(usable_cores())
    index, _ = build(folder / "exact", IndexPass.of(reference), batches(), engine)
    seconds = time.monotonic() - start
    rate = round(len(index) / seconds, 1)
    say(f"built {len(index):,} sentences in {seconds:.1f} s")
    peak = peak_mib(resource.RUSAGE_SELF), peak_mib(resource.RUSAGE_CHILDREN)
    record = {"sentences": len(index), "seconds": round(seconds, 1), "sentences_per_second": rate}
    return index, held_back, record | {"peak_mib": peak[0], "peak_mib_of_a_worker": peak[1]}


def _compare(exact: Index, queries: np.ndarray, repeats: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Return bytes, recall and latencies of the exact search and of approximate ones."""
    finds: dict[str, Find] = {"exact": lambda asked: best(CosineScorer(), asked, exact.blocks(), K)[1]}
    results: dict[str, dict[str, Any]] = {"exact": {"bytes": folder_bytes(exact.folder)}}
    path, name = folder / "approximate.usearch", f"usearch, {CANDIDATES} scored"
    try:
        taken = seconds(lambda: write_approximate(path, exact.blocks(), queries.shape[1]))
        index = {"bytes": path.stat().st_size, "seconds": round(taken, 1)}
        finds[name] = _approximately(path, exact)
        results[name] = {"bytes": results["exact"]["bytes"] + index["bytes"], "index": index}
        say(f"{name}: {index}")
    except PotstillError as error:
        results[name] = {"failed": reason(error)}
    nearest = finds["exact"](queries)
    for name, find in finds.items():
        shared = [np.isin(*rows).sum() for rows in zip(find(queries), nearest, strict=True)]
        results[name]["recall"] = round(float(np.mean(shared)) / nearest.shape[1], 4)
    for size in SIZES:
        turns = {n: lambda f=f, s=size: 1000 * seconds(lambda: f(queries[:s])) for n, f in finds.items()}
        for name, values in take_turns(turns, repeats).items():
            results[name][f"ms_{size}"] = summary(values, 2)
    return results


def _approximately(path: Path, exact: Index) -> Find:
    candidates = open_approximate(path)

    def find(queries: np.ndarray) -> np.ndarray:
        nearest = []
        for query, rows in zip(queries, candidates(queries, CANDIDATES), strict=True):
            rows = np.sort(rows)
            nearest.append(rows[best(CosineScorer(), query[None], [(0, exact.vectors[rows])], K)[1][0]])
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
    built_as = [
        f"{name}: its index alone {form['index']['bytes'] / 2**20:,.1f} MiB, made in {form['index']['seconds']:,} s."
        for name, form in results["forms"].items()
        if "index" in form
    ]
    failed = [f"{n}: {form['failed']}" for n, form in results["forms"].items() if "failed" in form]
    return [
        "# An index of sentences: cost of building and of queries",
        "",
        f"{what} (`{results['encoder']}`), {results['queries']} queries that are not among them. Recall against the "
        f"exact search. Embedding and writing the {built['sentences']:,} sentences took "
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
