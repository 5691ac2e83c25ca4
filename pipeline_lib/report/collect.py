"""Reads the tasks' results, and flattens them into the plain numbers of ``metrics.json``."""

from dataclasses import dataclass
from typing import Any

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.layout import Layout
from pipeline_lib.evaluation.results import MethodScores, TaskScores
from pipeline_lib.evaluation.speed import TaskSpeed


@dataclass(frozen=True)
class TaskResult:
    """One task's scores, and its timings if speed was measured."""

    task: str
    scores: TaskScores
    speed: TaskSpeed | None = None


def read_results(layout: Layout, tasks: list[str]) -> list[TaskResult]:
    """Read the scores of every task.

    :param layout: where all artifacts are.
    :raises DistilleryError: if a task has no scores yet.
    """
    return [TaskResult(task, TaskScores.read(layout.scores(task))) for task in tasks]


def read_finished(layout: Layout, tasks: list[str]) -> list[TaskResult]:
    """Read the scores of the tasks that have some, with timings if there are any.

    :raises DistilleryError: if no task has been evaluated.
    """
    finished = [task for task in tasks if layout.scores(task).exists()]
    if not finished:
        raise DistilleryError(
            f"{layout.results(tasks[0])}: no results yet for {', '.join(tasks)}. Run `dvc repro` "
            "first."
        )
    return [
        TaskResult(task, TaskScores.read(layout.scores(task)), read_speed(layout, task))
        for task in finished
    ]


def metrics(results: list[TaskResult]) -> dict[str, Any]:
    """Return ``{task: {teachers: {...}, methods: {...}}}`` of plain numbers, for ``dvc metrics``.

    For example ``movies.methods.bilstm.test.accuracy.mean``. Splits with hidden labels are left
    out.
    """
    return {result.task: _task_metrics(result.scores) for result in results}


def _task_metrics(scores: TaskScores) -> dict[str, Any]:
    splits = scores.scored_splits
    return {
        "teachers": {
            name: {
                split: own.scores[split] | own.details.scores[split]
                for split in splits
                if own.scores[split] is not None
            }
            for name, own in scores.teachers.items()
        },
        "methods": {name: _method_metrics(own, splits) for name, own in scores.methods.items()},
    }


def _method_metrics(own: MethodScores, splits: list[str]) -> dict[str, Any]:
    if not splits:
        # Nothing is labelled.
        return {split: {"agreement": v} for split, v in own.agreement.items() if v is not None}
    found: dict[str, Any] = {}
    for split in splits:
        found[split] = {
            metric: {"mean": value.mean, "std": value.std}
            for metric, value in own.scores[split].items()
        }
        if own.agreement[split] is not None:
            found[split]["agreement"] = own.agreement[split]
        for detail, value in own.details.scores[split].items():
            found[split][detail] = {"mean": value.mean, "std": value.std}
        if gain := own.gain[split]:
            # With one seed there is neither p.
            kept = gain.model_dump(include={"difference", "p", "p_holm"}, exclude_none=True)
            found[split]["gain"] = kept
    return found


def read_speed(layout: Layout, task: str) -> TaskSpeed | None:
    """Return a task's timings, or None if there are none.

    :raises DistilleryError: if the file is damaged, or of an earlier version of this library.
    """
    path = layout.speed(task)
    return TaskSpeed.read(path) if path.exists() else None
