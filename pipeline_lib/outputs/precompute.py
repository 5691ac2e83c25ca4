"""Computing wide outputs (sentence vectors, layer states), or looking answers up, and proving their alignment."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lib.base.devices import single_thread
from pipeline_lib.base.files import write_json, write_json_lines
from pipeline_lib.outputs.alignment import equal_keys, proof_key, prove_vectors
from pipeline_lib.outputs.files.keyed_table import content_keys, read_texts
from pipeline_lib.outputs.files.lookup_pass import AnswerPass
from pipeline_lib.outputs.teacher_pass import TeacherPass
from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.engine.protocol import Engine
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.store import kept_json

UNANSWERED = "unanswered.jsonl"
"""Next to the outputs: what has no answer, one per line."""


def precompute_vectors(inputs: ShardSet, teacher_pass: TeacherPass, folder: Path, engine: Engine, title: str) -> str:
    """Run a pass over one shard set into ``folder``, and prove that its rows are aligned, in alignment.json.

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


def take_outputs(lookup: AnswerPass, inputs: ShardSet, folder: Path, engine: Engine) -> str:
    """Look up the answers to a shard set into ``folder``, list what has none, and write alignment.json.

    :returns: a summary: how many rows there are, and how many have no answer.
    """
    manifest, report = run_pass(lookup, inputs, folder, engine)
    outputs = ShardSet.open(folder)
    missing = list_unanswered(inputs, outputs, lookup.mask)
    figures = {"rows": manifest.rows, "rows_with_equal_key": equal_keys(inputs, outputs)}
    write_json(folder / "alignment.json", figures | manifest.counts)
    note = f", {missing:,} without an answer: {folder / UNANSWERED}" if missing else ""
    return f"{manifest.rows:,} rows; {report}{note}"


def list_unanswered(inputs: ShardSet, outputs: ShardSet, mask: str) -> int:
    """Write what has no answer, if anything, next to the outputs; return how many there are."""
    count = outputs.manifest.counts.get("unanswered", 0)
    if count:
        write_json_lines(outputs.folder / UNANSWERED, _unanswered(inputs, outputs, mask))
    return count


def _unanswered(inputs: ShardSet, outputs: ShardSet, mask: str) -> Iterator[dict[str, Any]]:
    """Yield ``shard``, ``row``, content ``key``, ``text`` and ``text_pair``."""
    shards = zip(inputs.manifest.shards, inputs.tables(), outputs.tables(), strict=True)
    for shard, rows, stored in shards:
        missing = np.flatnonzero(np.isnan(matrix(stored["logits"])).any(axis=1))
        sides = read_texts(rows.take(missing), mask)
        for row, key, *texts in zip(missing.tolist(), content_keys(sides), *sides, strict=True):
            named = dict(zip(("text", "text_pair"), texts, strict=False))
            yield {"shard": shard.name, "row": row, "key": f"{key:016x}", **named}
