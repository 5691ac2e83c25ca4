"""Computing wide outputs (sentence vectors, layer states) and proving their alignment."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pipeline_lib.base.devices import single_thread
from pipeline_lib.base.files import write_json
from pipeline_lib.outputs.alignment import proof_key, prove_vectors
from pipeline_lib.outputs.teacher_pass import TeacherPass
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.engine.protocol import Engine
from pipeline_lib.shards.kept import kept_json
from pipeline_lib.shards.shard_sets import ShardSet


def precompute_vectors(inputs: ShardSet, teacher_pass: TeacherPass, folder: Path, engine: Engine, title: str) -> str:
    """Run a pass over one shard set into ``folder``, and prove that its rows are aligned.

    The proof's figures are written next to the outputs, in alignment.json.

    :param title: of the progress display.
    :returns: a summary: how many rows there are, how many shards were found, and what was proven.
    """
    manifest, report = run_pass(teacher_pass, inputs, folder, engine, title)
    outputs = ShardSet.open(folder)

    def compute() -> dict[str, Any]:
        # One thread here too: workers for the next set are forked from this process.
        with single_thread() if teacher_pass.device == "cpu" else nullcontext():
            return prove_vectors(inputs, outputs, teacher_pass)

    figures = kept_json("proofs", proof_key(inputs, outputs, teacher_pass), compute)
    write_json(folder / "alignment.json", figures)
    return (
        f"{manifest.rows:,} rows; {report}; of {figures['recomputed_rows']} run again "
        f"{figures['nearest_to_their_own']:.0%} nearest to their own"
    )
