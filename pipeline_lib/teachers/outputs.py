"""The pass that computes a teacher's outputs for every row of a shard set, through the store.

An output shard is found by everything that determines it.  So a restart computes the shards that
were in flight, a raised n_iter the new ones, a changed example its block's; old settings are found
again.  Batches are formed within one shard, so no shard's bytes depend on another.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from pipeline_lib.base.devices import (
    resolve_batch_tokens,
    resolve_device,
    resolve_precision,
    single_thread,
)
from pipeline_lib.base.files import clear_folder, sha256_json
from pipeline_lib.base.processor import computed_on
from pipeline_lib.base.progress import show_progress
from pipeline_lib.engine.local import Tell, run_jobs
from pipeline_lib.params import Params
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
    check_answers,
    read_shard,
    schema_of,
    write_manifest,
)
from pipeline_lib.storage.store import Store
from pipeline_lib.teachers.model import Teacher, digest_model, load_teacher


@dataclass(frozen=True)
class OutputPass:
    """What is computed and how: all that an output depends on besides its input shard.

    :cvar kind: of outputs; also names their part of the store.
    :ivar folder: the teacher's model folder.
    :ivar digest: of its weights, tokenizer, configuration.
    """

    kind: ClassVar[str] = "logits"
    folder: Path
    digest: str
    device: str
    precision: str
    max_length: int
    batch_tokens: int

    @classmethod
    def of(cls, params: Params, folder: Path) -> "OutputPass":
        """Resolve device and number format of params for the teacher in ``folder``."""
        device = resolve_device(params.device)
        return cls(
            folder,
            digest_model(folder),
            str(device),
            resolve_precision(params.precompute.precision, device),
            params.teacher.max_length,
            resolve_batch_tokens(params.precompute.batch_tokens, device),
        )

    def made_from(self) -> dict[str, Any]:
        """Return the settings that determine the outputs, for keys and manifests."""
        return {
            "kind": self.kind,
            "teacher": self.digest,
            "max_length": self.max_length,
            "batch_tokens": self.batch_tokens,
            "precision": self.precision,
            "device": self.device.split(":")[0],
            "code": code_fingerprint(type(self).__module__),
            "libraries": library_versions(*TRAINING_LIBRARIES),
        }

    def key(self, shard: Shard) -> str:
        """Return the store key of the outputs for ``shard``."""
        made_from = self.made_from()
        libraries = deciding(made_from["libraries"])
        return sha256_json({**made_from, "libraries": libraries, "input": shard.sha256})

    def teacher(self) -> Teacher:
        """Load the teacher; a process keeps the last one."""
        return _loaded(self.folder, self.digest, self.device, self.precision)

    def compute(self, rows: pa.Table) -> pa.Table:
        """Return columns key (uint64) and logits (fixed-size list of float32) for ``rows``."""
        teacher = self.teacher()
        logits = teacher.predict(teacher.texts(rows), self.max_length, self.batch_tokens)
        return pa.table({"key": rows["key"], "logits": list_column(logits)})


@lru_cache(maxsize=1)
def _loaded(folder: Path, digest: str, device: str, precision: str) -> Teacher:
    return load_teacher(folder, device, precision)


@dataclass
class Tally:
    """How much of a pass was computed and how much found in the store, in shards and rows."""

    computed: int = 0
    reused: int = 0
    rows_computed: int = 0
    rows_reused: int = 0


Progress = Callable[[Tally, int], None]
"""Called as shards are done, with the tally and the rows of the whole set."""


def compute_outputs(
    inputs: ShardSet,
    output_pass: OutputPass,
    folder: Path,
    workers: int,
    progress: Progress | None = None,
) -> tuple[Manifest, Tally]:
    """Write the outputs for ``inputs``: shard k answers to input shard k, row for row.

    :param workers: processes; their number changes no byte.
    :returns: the manifest, and how many shards were computed and reused.
    """
    store, tally, total = Store(output_pass.kind), Tally(), inputs.manifest.rows
    shards = inputs.manifest.shards
    clear_folder(folder)
    store.sweep()
    found = {shard.name: store.find(output_pass.key(shard)) for shard in shards}
    missing = [shard for shard in shards if found[shard.name] is None]
    for shard in shards:
        if found[shard.name]:
            tally.reused, tally.rows_reused = tally.reused + 1, tally.rows_reused + shard.rows
    jobs = [(inputs.path(shard), shard, output_pass) for shard in missing]
    on_cpu = output_pass.device == "cpu"
    if missing and on_cpu:
        with single_thread():
            output_pass.teacher()  # forked workers share it
    for number, output in run_jobs(_compute_shard, jobs, workers, single_threaded=on_cpu):
        found[missing[number].name] = output
        tally.computed, tally.rows_computed = tally.computed + 1, tally.rows_computed + output.rows
        if progress:
            progress(tally, total)
    for shard in shards:
        store.place(output_pass.key(shard), folder / shard.name)
    manifest = _manifest(inputs, output_pass, folder, found)
    check_answers(inputs.manifest, manifest)
    write_manifest(folder, manifest)
    return manifest, tally


def compute_with_progress(
    inputs: ShardSet, output_pass: OutputPass, folder: Path, workers: int, title: str
) -> tuple[Manifest, Tally]:
    """Do what :func:`compute_outputs` does, and show how far it is under ``title``."""
    with show_progress(title, "rows") as advance:

        def progress(tally: Tally, rows: int) -> None:
            note = f"({tally.reused} shards reused)"
            done = tally.rows_computed + tally.rows_reused
            advance(done, rows, note, counted=tally.rows_computed)

        return compute_outputs(inputs, output_pass, folder, workers, progress)


def _compute_shard(job: tuple[Path, Shard, OutputPass], _: Tell) -> Shard:
    path, shard, output_pass = job
    outputs = output_pass.compute(read_shard(path))
    processor = computed_on(output_pass.device)
    return Store(output_pass.kind).add(output_pass.key(shard), outputs, shard.sha256, processor)


def _manifest(
    inputs: ShardSet, output_pass: OutputPass, folder: Path, found: dict[str, Shard | None]
) -> Manifest:
    shards = [
        replace(found[shard.name], name=shard.name, source=shard.sha256)
        for shard in inputs.manifest.shards
    ]
    schema = schema_of(read_shard(folder / shards[0].name)) if shards else {}
    made_from = {**output_pass.made_from(), "inputs": inputs.manifest.digest}
    return Manifest(output_pass.kind, schema, shards, made_from)
