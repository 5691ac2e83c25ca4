"""How much memory the teacher's pass over sentences takes as the input grows.

Claim: `precompute_vectors` writes shard by shard, so its peak memory is that of the model and one
shard, however many shards there are.

    python benchmarks/pass_memory.py

Run it in a workspace where `dvc repro` has finished `split_wikipedia` and `fetch_teacher`.  The
first sentences of data/wikipedia are written 1, 4 and 16 times, in shards of constant size; every
copy has a word of its own, so that no shard is reused.  Each size runs in a process of its own,
with one worker and an empty store; peaks are the kernel's (ru_maxrss).

Writes benchmarks/results/pass_memory.{json,md}.
"""

import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

os.environ["OMP_NUM_THREADS"] = "1"

import pyarrow as pa
import typer
from harness import RESULTS, Out, alone, facts, peak_mib, say, table, write_results

from pipeline_lib.base.hashing import string_keys
from pipeline_lib.params import load_params
from pipeline_lib.shards.shard_sets import Manifest, ShardSet, schema_of, write_manifest, write_shard

SIZES = (1, 4, 16)
DATA = Path("data")


def main(
    sentences: Annotated[int, typer.Option(help="Sentences in a single copy.")] = 2000,
    shard_rows: Annotated[int, typer.Option(help="Sentences per shard.")] = 1000,
    out: Out = RESULTS,
) -> None:
    """Measure and write the results."""
    fact = facts(("torch", "transformers", "pyarrow"), cores=1, threads=1)
    texts = ShardSet.open(DATA / "wikipedia/train").to_table()["text"].to_pylist()[:sentences]
    runs = {}
    with tempfile.TemporaryDirectory() as scratch:
        for size in SIZES:
            folder = Path(scratch) / str(size)
            _write_copies(texts, size, shard_rows, folder / "inputs")
            runs[size] = alone(_pass, folder)
            say(f"{size}x: {runs[size]}")
    results = {"facts": fact, "shard_rows": shard_rows, "runs": runs}
    write_results("pass_memory", results, _markdown(results), out)


def _write_copies(texts: list[str], copies: int, shard_rows: int, folder: Path) -> None:
    rows = [f"copy {copy}: {text}" for copy in range(copies) for text in texts]
    shards = []
    for start in range(0, len(rows), shard_rows):
        texts = rows[start : start + shard_rows]
        columns = {"key": pa.array(string_keys(texts)), "text": pa.array(texts)}
        shards.append(write_shard(folder / f"s{start:08d}.arrow", pa.table(columns)))
    write_manifest(folder, Manifest("sentences", schema_of(pa.table(columns)), shards))


def _pass(folder: Path) -> dict[str, Any]:
    os.environ["POTSTILL_HOME"] = str(folder / "home")
    from pipeline_lib.base.devices import single_thread
    from pipeline_lib.base.layout import Layout
    from pipeline_lib.outputs.vectors import VectorPass
    from pipeline_lib.shards.engine.local import LocalEngine
    from pipeline_lib.shards.engine.passes import run_pass

    params = load_params()
    model = Layout(DATA).model(params.sentence_vectors.model)
    vector_pass = VectorPass.of(params, model)
    with single_thread():
        vector_pass.teacher().predict(["A sentence to warm up."], 128, 1024)
    before, start = peak_mib(resource.RUSAGE_SELF), time.monotonic()
    inputs = ShardSet.open(folder / "inputs")
    manifest, report = run_pass(vector_pass, inputs, folder / "vectors", LocalEngine(1))
    if report.reused:
        raise SystemExit("shards were found, nothing was measured")
    return {
        "rows": manifest.rows,
        "megabytes_written": round(sum(shard.bytes for shard in manifest.shards) / 1e6, 1),
        "seconds": round(time.monotonic() - start, 1),
        "mib_when_loaded": before,
        "mib_peak": peak_mib(resource.RUSAGE_SELF),
    }


def _markdown(results: dict[str, Any]) -> list[str]:
    rows = [
        [
            f"{size} ×",
            f"{run['rows']:,}",
            f"{run['megabytes_written']:,.1f}",
            f"{run['mib_when_loaded']:,.0f}",
            f"{run['mib_peak']:,.0f}",
            f"{run['rows'] / run['seconds']:,.0f}",
        ]
        for size, run in results["runs"].items()
    ]
    return [
        "# Memory of the pass over sentences",
        "",
        f"`precompute_vectors`' pass over Wikipedia's sentences, shards of {results['shard_rows']:,} rows, one worker.",
        "",
        *table(["input", "rows", "MB written", "MiB when loaded", "MiB at peak", "rows/s"], rows),
    ]


if __name__ == "__main__":
    typer.run(main)
