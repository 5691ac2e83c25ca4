"""Trainings: how many of them have a result in the store, and how many are to be run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.commands.planning.rows import Count
from pipeline_lib.commands.planning.stages import PlannedStage
from pipeline_lib.params import Encoder, Params

if TYPE_CHECKING:
    from pipeline_lib.training.search import TrainingRow


def teachers(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the trainings of a task's teachers."""
    from pipeline_lib.training.teachers.finetuning import TeacherTask, teacher_row

    layout, task = Layout(), stage.item
    tasks = {task: TeacherTask.of(params, task, layout)}
    for name, row in params.teachers_of(task).items():
        if row.tuning.kind == "single":
            yield _count(teacher_row(params, name, tasks, layout, _device(params)))


def refined(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the trainings of a teacher of several tasks."""
    from pipeline_lib.training.teachers.refining import refined_row

    yield _count(refined_row(params, stage.item, Layout(), _device(params)))


def encoders(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the trainings of an encoder."""
    from pipeline_lib.training.distillation.encoders import encoder_row
    from pipeline_lib.training.distillation.general import general_row

    of_vectors = isinstance(params.encoder(stage.item), Encoder)
    make_row = encoder_row if of_vectors else general_row
    yield _count(make_row(params, stage.item, Layout(), _device(params)))


def students(params: Params, stage: PlannedStage) -> Iterator[Count]:
    """Yield the trainings of a task's students.

    A row that starts from another is new unless the students of that one are here.
    """
    from pipeline_lib.training.distillation.plans import make_plan
    from pipeline_lib.training.distillation.students import plans_in_turn, student_row

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
    best = max(stored, key=_merit).rate
    with_best = sum(row.spec(seed, best).result.is_whole() for seed in others)
    return Count(len(stored) + with_best, len(others) - with_best)


def _merit(spec: Any) -> float:
    return spec.record.read(spec.result.folder / "training.json").merit


def _device(params: Params) -> str:
    from pipeline_lib.base.devices import resolve_device

    return str(resolve_device(params.device))
