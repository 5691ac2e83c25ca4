"""How much of a stage's work is stored, and how much is to be computed: rows, or trainings.

If a transfer set gets more iterations, the store has those it had before; how many rows the others
will have is not known until they are made, but is about the same.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.commands.planning.stages import PlannedStage
from pipeline_lib.corpora.augmentation.transfer_sets import examples_of, pass_of
from pipeline_lib.params import TRAINED_ALONE, Params
from pipeline_lib.shards.engine.passes import ShardPass, stored_outputs
from pipeline_lib.shards.shard_sets import Shard, ShardSet
from pipeline_lib.shards.store import Store

if TYPE_CHECKING:
    from pipeline_lib.training.search import TrainingRow


@dataclass(frozen=True)
class Count:
    """:ivar stored: rows or trainings; :ivar new: to be computed; :ivar is_estimate: of ``new``."""

    stored: int = 0
    new: int = 0
    is_estimate: bool = False


def augmented_rows(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the rows of all blocks of a task's transfer sets."""
    for recipe in params.recipes_of(stage.item):
        for shards, missing in _blocks(params, stage, recipe):
            yield Count(sum(shard.rows for shard in shards), missing, missing > 0)


def answered_rows(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the rows that a task's teachers answer; all are new to one that may be tuned again."""
    layout, task = Layout(), stage.item
    is_tuned = f"finetune_teacher@{task}" in stage.after
    for name, row in params.teachers_of(task).items():
        if not row.runs:
            continue
        is_stored = (lambda _: False) if is_tuned else _stored_answers(params, task, name)
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


def _stored_answers(params: Params, task: str, teacher: str) -> Callable[[Shard], bool]:
    from pipeline_lib.outputs.teacher_pass import LogitPass

    length = params.teachers[teacher].max_length
    answers: ShardPass = LogitPass.of(params, Layout().teacher(task, teacher), length)
    store = Store(answers.kind)
    return lambda shard: bool(stored_outputs(answers, shard.sha256, store))


def _blocks(params: Params, stage: PlannedStage, recipe: str) -> Iterator[tuple[list[Shard], int]]:
    """Yield the stored shards of each block of a transfer set, and about how many rows it lacks."""
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


def trained_teachers(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the trainings of a task's teachers."""
    from pipeline_lib.training.teachers.finetuning import TeacherTask, teacher_row

    layout, task = Layout(), stage.item
    tasks = {task: TeacherTask.of(params, task, layout)}
    for name, row in params.teachers_of(task).items():
        if row.tuning.kind in TRAINED_ALONE:
            yield _count(teacher_row(params, name, tasks, layout, _device(params)))


def trained_refined(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the trainings of a teacher of several tasks."""
    from pipeline_lib.training.teachers.refining import refined_row

    yield _count(refined_row(params, stage.item, Layout(), _device(params)))


def trained_encoders(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the trainings of an encoder."""
    from pipeline_lib.training.distillation.general import encoder_row

    yield _count(encoder_row(params, stage.item, Layout(), _device(params)))


def trained_students(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the trainings of a task's students.

    A row that starts from another is new unless the students of that one are here.
    """
    from pipeline_lib.training.distillation.plans import make_plan
    from pipeline_lib.training.distillation.regressions import student_row
    from pipeline_lib.training.distillation.students import plans_in_turn

    if any(reason.startswith("params.yaml: vocabulary") for reason in stage.reasons):
        raise PotstillError(f"{stage.name}: its vocabulary is made anew first.")
    layout, task = Layout(), stage.item
    inputs = layout.vocabulary(task), layout.split(task, "dev"), params.seeds, _device(params)
    plans = [make_plan(params, task, name, layout) for name in sorted(params.methods_of(task))]
    for turn in plans_in_turn(plans):
        for plan in turn:
            yield _count(student_row(plan.started(layout, params.seeds), *inputs))


def _count(row: "TrainingRow[Any]") -> Count:
    """Count a row's trainings: every rate with the first seed, then the best with the others."""
    first = [row.spec(*which) for which in row.search()]
    stored = [spec for spec in first if spec.result.is_whole()]
    others = [] if len(row.rates) == 1 else row.seeds[1:]
    new = len(first) - len(stored)
    if new:
        return Count(len(stored), new + len(others))
    best = max(stored, key=lambda spec: spec.record.read(spec.result.folder / "training.json").merit).rate
    with_best = sum(row.spec(seed, best).result.is_whole() for seed in others)
    return Count(len(stored) + with_best, len(others) - with_best)


def _device(params: Params) -> str:
    from pipeline_lib.base.devices import resolve_device

    return str(resolve_device(params.device))


@dataclass(frozen=True)
class Work:
    """Work of one kind.

    :ivar kind: ``rows``, or ``trainings``.
    :ivar stored: how much is there already; :ivar new: how much is to be computed.
    :ivar is_estimate: whether ``new`` is about right only: its input is not made yet.
    """

    kind: str
    stored: int
    new: int
    is_estimate: bool

    def __str__(self) -> str:
        about = "about " if self.is_estimate and self.new else ""
        return f"{self.kind}: {self.stored:,} stored, {about}{self.new:,} new"


@dataclass(frozen=True)
class _Counted:
    """How a stage's work is counted.

    :ivar undecided_by: the stages before it, whose outputs have to be there.
    """

    kind: str
    count: Callable[[Params, PlannedStage], Iterator[Count]]
    undecided_by: tuple[str, ...]


_OF_TASK, _MODELS = ("fetch_data", "prepare"), ("fetch_models", "pretrain", "train_joint")
_COUNTED = {
    "augment": _Counted("rows", augmented_rows, _OF_TASK),
    "precompute": _Counted("rows", answered_rows, _OF_TASK),
    "finetune_teacher": _Counted("trainings", trained_teachers, (*_OF_TASK, "fetch_models", "refine_teacher")),
    "refine_teacher": _Counted("trainings", trained_refined, (*_OF_TASK, "fetch_models")),
    "pretrain": _Counted(
        "trainings", trained_encoders, (*_OF_TASK, "fetch_models", "split_wikipedia", "augment", "precompute_vectors")
    ),
    "train": _Counted(
        "trainings", trained_students, (*_OF_TASK, *_MODELS, "augment", "finetune_teacher", "precompute")
    ),
}


def work_of(stage: PlannedStage, params: Params) -> Work | None:
    """Return the work of a stage; None if it is not known before the run, or not counted."""
    counted = _COUNTED.get(stage.kind)
    before = {name.partition("@")[0] for name in stage.after}
    if counted is None or before & {*counted.undecided_by}:
        return None
    try:
        counts = [*counted.count(params, stage)]
    except (PotstillError, OSError):
        # What it reads is not here yet.
        return None
    return Work(
        counted.kind,
        sum(count.stored for count in counts),
        sum(count.new for count in counts),
        any(count.is_estimate for count in counts),
    )
