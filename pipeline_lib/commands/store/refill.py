"""Refills the store from a workspace's data, which travel: `dvc pull` brings them, not the store.

A set's manifest says what it was made from.  If that is what a pass here would make it from, code
and libraries included, its files are what the pass would compute.  Outputs of other code or
libraries can be adopted: some rows of every shard are computed again, and have to come out alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_lib.base.errors import DistilleryError
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
    :ivar difference: of rows computed again, as a share of the mean distance between rows; None if
        none were.
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


def refill(params: Params, layout: Layout, tolerance: float | None) -> Iterator[Refilled]:
    """Take the transfer sets and teachers' outputs of a folder of data into the store.

    :param tolerance: by how much rows computed again may differ, see :class:`Refilled`, if outputs
        were made by other code or libraries; None: such outputs are left out.
    """
    for task in params.tasks:
        for made in [*_transfer_sets(params, task, layout), *_outputs(params, task, layout)]:
            if made.folder.exists():
                try:
                    yield _take(made, tolerance)
                except DistilleryError as error:
                    yield Refilled(made.folder, fault=str(error))


def _transfer_sets(params: Params, task: str, layout: Layout) -> Iterator[_Made]:
    from pipeline_lib.stages.augment import examples_of, pass_of

    lexicon = layout.lexicon(task)
    for recipe in params.recipes_of(task) if lexicon.exists() else ():
        examples = examples_of(params, task, recipe, layout)
        made_by = pass_of(params, task, recipe, examples, lexicon)
        yield _Made(layout.transfer(task, recipe), examples, made_by)


def _outputs(params: Params, task: str, layout: Layout) -> Iterator[_Made]:
    from pipeline_lib.outputs.teacher_pass import LogitPass, StatePass

    for name, row in params.teachers_of(task).items():
        folder = layout.teacher(task, name)
        if not row.runs or not folder.exists():
            continue
        logits = LogitPass.of(params, folder, row.max_length)
        for recipe in filter(row.answers, params.recipes_of(task)):
            yield _Made(layout.outputs(task, name, recipe), layout.transfer(task, recipe), logits)
        for split in layout.heldout_splits(task):
            target = layout.heldout_outputs(task, name, split)
            yield _Made(target, layout.split(task, split), logits)
        for recipe in params.states_of(task).get(name, ()):
            states = StatePass.of(params, folder, row.max_length, row.states)
            yield _Made(layout.states(task, name, recipe), layout.transfer(task, recipe), states)


def _take(made: _Made, tolerance: float | None) -> Refilled:
    outputs = ShardSet.open(made.folder)
    inputs = made.inputs if isinstance(made.inputs, ShardSet) else ShardSet.open(made.inputs)
    differing, difference = [*_differing(made.shard_pass, inputs.manifest, outputs.manifest)], None
    if differing:
        fault = f"made from other {', '.join(differing)}"
        # Transfer sets are made again in seconds.
        can_adopt = {*differing} <= _ADOPTED and made.shard_pass.row_for_row
        if not can_adopt:
            return Refilled(made.folder, fault=fault)
        if tolerance is None:
            return Refilled(made.folder, fault=f"{fault}; --adopt takes it if rows come out alike")
        difference = _difference(inputs, outputs, made.shard_pass)
        if difference > tolerance:
            worse = f"rows computed again differ by {difference:.1g}, more than {tolerance:g}"
            return Refilled(made.folder, fault=f"{fault}; {worse}", difference=difference)
    store, counts = Store(made.shard_pass.kind), {True: 0, False: 0}
    by_name = {shard.name: shard for shard in outputs.manifest.shards}
    for block in inputs.manifest.shards:
        for part, shard in enumerate(_parts(made.shard_pass, block, by_name)):
            key = made.shard_pass.key(block.sha256, part)
            is_new = store.find(key) is None
            if is_new:
                store.take(key, outputs.path(shard), _described(shard, difference))
            counts[is_new] += 1
    return Refilled(made.folder, counts[True], counts[False], difference=difference)


_ADOPTED = {"code", "libraries"}
"""What may differ if rows computed again come out alike."""


def _difference(inputs: ShardSet, outputs: ShardSet, teacher_pass: "TeacherPass") -> float:
    """Return by how much rows computed again differ; some of every shard are.

    :raises DistilleryError: if they belong to other rows, or to another teacher.
    """
    from pipeline_lib.outputs.alignment import prove_alignment, prove_vectors

    prove = prove_alignment if teacher_pass.kind == "logits" else prove_vectors
    return float(prove(inputs, outputs, teacher_pass)["max_share_of_distance"])


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
    """Yield the outputs of one input, from the first on."""
    part = 0
    while (shard := by_name.get(shard_pass.output_name(block.name, part))) is not None:
        yield shard
        if shard_pass.row_for_row:
            return
        part += 1
