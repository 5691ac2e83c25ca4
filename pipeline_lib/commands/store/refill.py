"""Refills the store from a workspace's data, which travel: `dvc pull` brings them, not the store.

A set's manifest says what it was made from.  If that is what a pass here would make it from, code
and libraries included, its files are what the pass would compute.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params
from pipeline_lib.shards.engine.passes import ShardPass
from pipeline_lib.shards.fingerprint import deciding
from pipeline_lib.shards.shard_sets import Manifest, Shard, ShardSet
from pipeline_lib.shards.store import Store


@dataclass(frozen=True)
class Refilled:
    """What became of one set.

    :ivar new: shards that the store now has; :ivar known: those that it had.
    :ivar fault: why none were taken, if so.
    """

    folder: Path
    new: int = 0
    known: int = 0
    fault: str | None = None


@dataclass(frozen=True)
class _Made:
    """A set, the pass that makes it, and what it makes it from."""

    folder: Path
    inputs: Path | ShardSet
    shard_pass: ShardPass


def refill(params: Params, layout: Layout) -> Iterator[Refilled]:
    """Take the transfer sets and teachers' outputs of a folder of data into the store."""
    for task in params.tasks:
        for made in [*_transfer_sets(params, task, layout), *_outputs(params, task, layout)]:
            if made.folder.exists():
                try:
                    yield _take(made)
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


def _take(made: _Made) -> Refilled:
    outputs = ShardSet.open(made.folder)
    inputs = made.inputs if isinstance(made.inputs, ShardSet) else ShardSet.open(made.inputs)
    if differing := [*_differing(made.shard_pass, inputs.manifest, outputs.manifest)]:
        return Refilled(made.folder, fault=f"made from other {', '.join(differing)}")
    store, counts = Store(made.shard_pass.kind), {True: 0, False: 0}
    by_name = {shard.name: shard for shard in outputs.manifest.shards}
    for block in inputs.manifest.shards:
        for part, shard in enumerate(_parts(made.shard_pass, block, by_name)):
            key = made.shard_pass.key(block.sha256, part)
            is_new = store.find(key) is None
            if is_new:
                store.take(key, outputs.path(shard), shard)
            counts[is_new] += 1
    return Refilled(made.folder, counts[True], counts[False])


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
