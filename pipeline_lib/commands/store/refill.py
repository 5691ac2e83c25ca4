"""Refills the store from a workspace's data, which travel: `dvc pull` brings them, not the store.

A set's manifest says what it was made from.  If that is what a pass here would make it from, code
and libraries included, its files are what the pass would compute.  Outputs of other code or
libraries can be adopted: some rows of every shard are computed again, and have to come out alike.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params
from pipeline_lib.shards.engine.passes import ShardPass
from pipeline_lib.shards.fingerprint import deciding
from pipeline_lib.shards.shard_sets import Manifest, Shard, ShardSet
from pipeline_lib.shards.store import Store

if TYPE_CHECKING:
    from pipeline_lib.outputs.teacher_pass import TeacherPass


@dataclass(frozen=True)
class Refilled:
    """What became of one set.

    :ivar new: shards that the store now has; :ivar known: those that it had.
    :ivar fault: why none were taken, if so.
    :ivar difference: of rows computed again, as a share of the mean distance between rows; None if none were.
    """

    folder: Path
    new: int = 0
    known: int = 0
    fault: str | None = None
    difference: float | None = None


@dataclass(frozen=True)
class _Made:
    """A set, the pass that makes it, and what it makes it from."""

    folder: Path
    inputs: Path | ShardSet
    shard_pass: ShardPass

    def opened(self) -> tuple[ShardSet, ShardSet]:
        """Open the inputs and the set."""
        inputs = self.inputs if isinstance(self.inputs, ShardSet) else ShardSet.open(self.inputs)
        return inputs, ShardSet.open(self.folder)


def refill(params: Params, layout: Layout, tolerance: float | None) -> Iterator[Refilled]:
    """Take the transfer sets, teachers' outputs and sentence vectors of a folder of data.

    :param tolerance: by how much rows computed again may differ, see :class:`Refilled`, if outputs
        were made by other code or libraries; None: such outputs are left out.
    """
    for made in _made_sets(params, layout):
        try:
            yield _take(made, tolerance)
        except PotstillError as error:
            yield Refilled(made.folder, fault=str(error))


def offer(params: Params, layout: Layout, stages: Collection[str]) -> str | None:
    """Return the command that takes what some stages would compute and a folder of data holds.

    No bytes are checked, so the command may still leave some out.

    :param stages: their names, such as ``precompute@movies``.
    :returns: None, if the data hold nothing, or the store has it.
    """
    command, offered = "distill store import", None
    for made in _made_sets(params, layout, stages):
        with suppress(PotstillError):
            inputs, outputs = made.opened()
            differing = {*_differing(made.shard_pass, inputs.manifest, outputs.manifest)}
            store = Store(made.shard_pass.kind)
            if all(store.has(key) for key, _ in _keys(made, inputs, outputs)):
                continue
            if differing and _can_adopt(made, differing):
                return f"{command} --adopt"
            if not differing:
                offered = command
    return offered


def _made_sets(params: Params, layout: Layout, stages: Collection[str] | None = None) -> Iterator[_Made]:
    """Yield the sets in a folder of data that stages of this workspace would make.

    :param stages: just these; None: all.
    """
    makers = {"precompute_vectors": partial(_vectors, params, layout)}
    for task in params.tasks:
        makers[f"augment@{task}"] = partial(_transfer_sets, params, task, layout)
        makers[f"precompute@{task}"] = partial(_outputs, params, task, layout)
    for stage, make in makers.items():
        if stages is None or stage in stages:
            yield from (made for made in make() if made.folder.exists())


def _transfer_sets(params: Params, task: str, layout: Layout) -> Iterator[_Made]:
    from pipeline_lib.corpora.augmentation.transfer_sets import examples_of, pass_of

    for recipe in params.recipes_of(task) if layout.lexicon(task).exists() else ():
        examples = examples_of(params, task, recipe, layout)
        made_by = pass_of(params, task, recipe, examples, layout)
        yield _Made(layout.transfer(task, recipe), examples, made_by)


def _outputs(params: Params, task: str, layout: Layout) -> Iterator[_Made]:
    for name, row in params.teachers_of(task).items():
        folder = layout.teacher(task, name)
        if not row.runs or not folder.exists():
            continue
        # Importing torch takes seconds.
        from pipeline_lib.outputs.teacher_pass import LogitPass, StatePass

        logits = LogitPass.of(params, folder, row.max_length)
        for recipe in filter(row.answers, params.recipes_of(task)):
            yield _Made(layout.outputs(task, name, recipe), layout.transfer(task, recipe), logits)
        for split in layout.heldout_splits(task):
            target = layout.heldout_outputs(task, name, split)
            yield _Made(target, layout.split(task, split), logits)
        for recipe in params.states_of(task).get(name, ()):
            states = StatePass.of(params, folder, row.max_length, row.states)
            yield _Made(layout.states(task, name, recipe), layout.transfer(task, recipe), states)


def _vectors(params: Params, layout: Layout) -> Iterator[_Made]:
    folder = layout.model(params.sentence_vectors.model)
    if not params.sentence_encoders() or not folder.exists():
        return
    from pipeline_lib.outputs.vectors import VectorPass, sentence_sets

    made_by = VectorPass.of(params, folder)
    for sentences in sentence_sets(params, layout):
        yield _Made(sentences.outputs, sentences.inputs, made_by)


def _take(made: _Made, tolerance: float | None) -> Refilled:
    inputs, outputs = made.opened()
    differing, difference = {*_differing(made.shard_pass, inputs.manifest, outputs.manifest)}, None
    if differing:
        fault = f"made from other {', '.join(sorted(differing))}"
        if not _can_adopt(made, differing):
            return Refilled(made.folder, fault=fault)
        if tolerance is None:
            return Refilled(made.folder, fault=f"{fault}; --adopt takes it if rows come out alike")
        difference = difference_between(inputs, outputs, made.shard_pass)
        # Written so that NaN fails.
        if not difference <= tolerance:
            worse = f"rows computed again differ by {difference:.1g}, more than {tolerance:g}"
            return Refilled(made.folder, fault=f"{fault}; {worse}", difference=difference)
    store, counts = Store(made.shard_pass.kind), {True: 0, False: 0}
    for key, shard in _keys(made, inputs, outputs):
        is_new = store.find(key) is None
        if is_new:
            store.take(key, outputs.path(shard), _described(shard, difference))
        counts[is_new] += 1
    return Refilled(made.folder, counts[True], counts[False], difference=difference)


def _keys(made: _Made, inputs: ShardSet, outputs: ShardSet) -> Iterator[tuple[str, Shard]]:
    by_name = {shard.name: shard for shard in outputs.manifest.shards}
    for block in inputs.manifest.shards:
        for part, shard in enumerate(_parts(made.shard_pass, block, by_name)):
            yield made.shard_pass.key(block.sha256, part), shard


_ADOPTED = {"code", "libraries"}
"""What may differ if rows computed again come out alike."""


def _can_adopt(made: _Made, differing: Collection[str]) -> bool:
    # Transfer sets are made again in seconds.
    return {*differing} <= _ADOPTED and made.shard_pass.row_for_row


def _described(shard: Shard, difference: float | None) -> Shard:
    """Return a shard that says so if it was adopted."""
    if difference is None:
        return shard
    adopted = f"{shard.computed_on}; adopted: rows computed again differ by {difference:.1g}"
    return replace(shard, computed_on=adopted)


def _differing(shard_pass: ShardPass, inputs: Manifest, outputs: Manifest) -> Iterator[str]:
    """Yield the names of what a set was made from and a pass here would not make it from."""
    now = {**shard_pass.made_from(), "inputs": inputs.digest}
    then = outputs.made_from
    for name in now:
        ours, theirs = now[name], then.get(name)
        if name == "libraries":
            ours, theirs = (deciding(versions or {}) for versions in (ours, theirs))
        if ours != theirs:
            yield name


def _parts(shard_pass: ShardPass, block: Shard, by_name: dict[str, Shard]) -> Iterator[Shard]:
    part = 0
    while (shard := by_name.get(shard_pass.output_name(block.name, part))) is not None:
        yield shard
        if shard_pass.row_for_row:
            return
        part += 1


def difference_between(inputs: ShardSet, outputs: ShardSet, teacher_pass: "TeacherPass") -> float:
    """Return by how much rows computed again differ, at most; some of every shard are.

    What rounding for storage explains does not count.

    :returns: a share of the mean distance between the rows of a shard, averaged over the shards;
        infinite if no shard has different rows; NaN if outputs are.
    """
    # They import torch, which takes seconds.
    from pipeline_lib.outputs.alignment import different_samples, equal_keys, mean_distance, run_again

    equal_keys(inputs, outputs)
    samples = [*different_samples(inputs, outputs, teacher_pass)]
    storage, errors = getattr(teacher_pass, "storage", "float32"), [0.0]
    for sample, again in zip(samples, run_again(samples, teacher_pass), strict=True):
        apart = np.abs(again - sample.stored) - _half_steps(sample.stored, storage)
        errors.append(float(np.linalg.norm(np.maximum(apart, 0.0), axis=1).max()))
    # Of all shards: the rows of a single one may be alike, or be just one.
    distances = [mean_distance(sample.stored) for sample in samples if len(sample.stored) > 1]
    error, distance = float(np.max(errors)), float(np.mean(distances or [0.0]))
    return error / distance if distance else (float("inf") if error else 0.0)


def _half_steps(stored: np.ndarray, storage: str) -> np.ndarray | float:
    """Return by how much storing can have moved each value, for float32 (rows, width)."""
    if storage == "float16":
        return np.spacing(np.abs(stored).astype(np.float16)).astype(np.float32) / 2
    return 0.0
