"""The pass that computes a teacher's logits for every row of a shard set, through the store.

An output shard is found by everything that determines it.  So a restart computes the shards that
were in flight, a raised n_iter the new ones, a changed example its block's; old settings are found
again.  Batches are formed within one shard, so no shard's bytes depend on another.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.devices import resolve_device, resolve_precision
from pipeline_lib.files import clear_folder, sha256_json
from pipeline_lib.params import Params
from pipeline_lib.shards import (
    Manifest,
    Shard,
    ShardSet,
    check_answers,
    read_shard,
    schema_of,
    write_manifest,
)
from pipeline_lib.store import Store
from pipeline_lib.teachers.model import Teacher, load_teacher

CODE_VERSION = 1
"""Bump when the same inputs and settings would give other outputs."""


@dataclass(frozen=True)
class OutputPass:
    """What is computed and how: all that an output depends on besides teacher and input."""

    teacher: Teacher
    max_length: int
    batch_tokens: int

    def key(self, shard: Shard) -> str:
        """Return the store key of the outputs for ``shard``."""
        return sha256_json({**self.made_from(), "input": shard.sha256})

    def made_from(self) -> dict[str, object]:
        """Return the settings that determine the outputs, for keys and manifests."""
        return {
            "kind": "logits",
            "teacher": self.teacher.digest,
            "max_length": self.max_length,
            "batch_tokens": self.batch_tokens,
            "precision": self.teacher.precision,
            "device": self.teacher.device.type,
            "code": CODE_VERSION,
        }

    def compute(self, rows: pa.Table) -> pa.Table:
        """Return columns key (uint64) and logits (fixed-size list of float32) for ``rows``."""
        logits = self.teacher.predict(rows["text"].to_pylist(), self.max_length, self.batch_tokens)
        classes = logits.shape[1]
        values = pa.array(np.ascontiguousarray(logits).reshape(-1), pa.float32())
        column = pa.FixedSizeListArray.from_arrays(values, classes)
        return pa.table({"key": rows["key"], "logits": column})


@dataclass
class Tally:
    """How much of a pass was computed and how much found in the store."""

    computed: int = 0
    reused: int = 0
    rows_computed: int = 0
    rows_reused: int = 0


Progress = Callable[[Tally, int], None]
"""Called after each shard with the tally and the rows of the whole set."""


def compute_outputs(
    inputs: ShardSet, output_pass: OutputPass, folder: Path, progress: Progress | None = None
) -> tuple[Manifest, Tally]:
    """Write the outputs for ``inputs`` to ``folder``: shard k answers to input shard k, row for row.

    :returns: the manifest, and how many shards were computed and reused.
    :raises DistilleryError: if another process is writing to the store.
    """
    store, tally = Store("logits"), Tally()
    clear_folder(folder)
    shards = []
    with store.lock():
        for shard in inputs.manifest.shards:
            output, computed = _output(store, inputs, shard, output_pass)
            store.place(output_pass.key(shard), folder / shard.name)
            shards.append(Shard(shard.name, output.rows, output.bytes, output.sha256, shard.sha256))
            _count(tally, shard.rows, computed)
            if progress:
                progress(tally, inputs.manifest.rows)
    schema = schema_of(read_shard(folder / shards[0].name)) if shards else {}
    made_from = {**output_pass.made_from(), "inputs": inputs.manifest.digest}
    manifest = Manifest("logits", schema, shards, made_from)
    check_answers(inputs.manifest, manifest)
    write_manifest(folder, manifest)
    return manifest, tally


def _output(
    store: Store, inputs: ShardSet, shard: Shard, output_pass: OutputPass
) -> tuple[Shard, bool]:
    key = output_pass.key(shard)
    found = store.find(key)
    if found:
        return found, False
    rows = read_shard(inputs.path(shard))
    return store.add(key, output_pass.compute(rows), shard.sha256), True


def _count(tally: Tally, rows: int, computed: bool) -> None:
    if computed:
        tally.computed, tally.rows_computed = tally.computed + 1, tally.rows_computed + rows
    else:
        tally.reused, tally.rows_reused = tally.reused + 1, tally.rows_reused + rows


def output_teacher(params: Params, folder: Path) -> Teacher:
    """Load the teacher for the pass, on the device and in the number format that params ask for."""
    device = resolve_device(params.device)
    return load_teacher(folder, device, resolve_precision(params.precompute.precision, device))


def logits_of(table: pa.Table) -> np.ndarray:
    """Return the logits column as float32, shape (rows, classes); zero-copy for a single chunk."""
    column = table["logits"].combine_chunks()
    return column.flatten().to_numpy().reshape(len(column), column.type.list_size)


def aligned(inputs: ShardSet, outputs: ShardSet) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Yield (input rows, logits) per shard, memory-mapped, after checking that they belong together."""
    check_answers(inputs.manifest, outputs.manifest)
    for rows, answers in zip(inputs.tables(), outputs.tables(), strict=True):
        yield rows, logits_of(answers)
