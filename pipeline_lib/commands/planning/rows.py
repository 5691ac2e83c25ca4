"""Rows of transfer sets and of teachers' answers: how many the store has, and how many it lacks.

If a transfer set gets more iterations, the store has those it had before; how many rows the others
will have is not known until they are made, but is about the same.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipeline_lib.base.layout import Layout
from pipeline_lib.commands.planning.stages import PlannedStage
from pipeline_lib.params import Params
from pipeline_lib.shards.engine.passes import ShardPass, stored_outputs
from pipeline_lib.shards.shard_sets import Shard, ShardSet
from pipeline_lib.shards.store import Store


@dataclass(frozen=True)
class Count:
    """:ivar stored: rows or trainings; :ivar new: to be computed; :ivar is_estimate: of ``new``."""

    stored: int = 0
    new: int = 0
    is_estimate: bool = False


def augmented(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the rows of all blocks of a task's transfer sets."""
    for recipe in params.recipes_of(stage.item):
        for shards, missing in _blocks(params, stage, recipe):
            yield Count(sum(shard.rows for shard in shards), missing, missing > 0)


def answered(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the rows that a task's teachers answer; all are new to one that may be tuned again."""
    layout, task = Layout(), stage.item
    is_tuned = f"finetune_teacher@{task}" in stage.after
    for name, row in params.teachers_of(task).items():
        if not row.runs:
            continue
        is_stored = _nothing if is_tuned else _stored_answers(params, task, name)
        shards: list[Shard] = []
        for recipe in filter(row.answers, params.recipes_of(task)):
            for made, missing in _blocks(params, stage, recipe):
                shards += made
                yield Count(0, missing, missing > 0)
        for split in layout.heldout_splits(task):
            shards += ShardSet.open(layout.split(task, split)).manifest.shards
        for shard in shards:
            stored = shard.rows if is_stored(shard) else 0
            yield Count(stored, shard.rows - stored, is_tuned)


def _nothing(_: Shard) -> bool:
    return False


def _stored_answers(params: Params, task: str, teacher: str) -> Callable[[Shard], bool]:
    from pipeline_lib.outputs.teacher_pass import LogitPass

    length = params.teachers[teacher].max_length
    answers: ShardPass = LogitPass.of(params, Layout().teacher(task, teacher), length)
    store = Store(answers.kind)
    return lambda shard: bool(stored_outputs(answers, shard.sha256, store))


def _blocks(params: Params, stage: PlannedStage, recipe: str) -> Iterator[tuple[list[Shard], int]]:
    """Yield the stored shards of each block of a transfer set, and about how many rows it lacks."""
    from pipeline_lib.stages.augment import examples_of, pass_of

    layout, task = Layout(), stage.item
    examples = examples_of(params, task, recipe, layout)
    augmentation = pass_of(params, task, recipe, examples, layout)
    store = Store(augmentation.kind)
    iterations = 0 if params.recipe(recipe).changes_nothing else augmentation.n_iter
    for block in examples.manifest.shards:
        shards = stored_outputs(augmentation, block.sha256, store)
        if augmentation.is_complete(shards):
            yield shards, 0
            continue
        missing = (iterations + 1 - len(shards)) * (shards[-1].rows if shards else block.rows)
        if augmentation.cap is not None:
            missing = min(missing, max(0, augmentation.cap - sum(shard.rows for shard in shards)))
        yield shards, missing
