"""Reads the tasks' results, and flattens them into the plain numbers of ``metrics.json``."""

from dataclasses import dataclass
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.results.schema import MethodScores, TaskScores
from pipeline_lib.results.speed import TaskSpeed


@dataclass(frozen=True)
class TaskResult:
    """One task's scores, and its timings if speed was measured."""

    task: str
    scores: TaskScores
    speed: TaskSpeed | None = None


def read_results(layout: Layout, tasks: list[str]) -> list[TaskResult]:
    """Read the scores of every task.

    :param layout: where all artifacts are.
    """
    return [TaskResult(task, TaskScores.read(layout.scores(task))) for task in tasks]


def read_finished(layout: Layout, tasks: list[str]) -> list[TaskResult]:
    """Read the scores of the tasks that have some, with timings if there are any."""
    finished = [task for task in tasks if layout.scores(task).exists()]
    if not finished:
        raise PotstillError(
            f"{layout.results(tasks[0])}: no results yet for {', '.join(tasks)}. Run `dvc repro` first."
        )
    return [TaskResult(task, TaskScores.read(layout.scores(task)), read_speed(layout, task)) for task in finished]


def metrics(results: list[TaskResult]) -> dict[str, Any]:
    """Return ``{task: {teachers: {...}, methods: {...}}}`` of plain numbers, for ``dvc metrics``.

    For example ``movies.methods.bilstm.test.accuracy.mean``. Splits with hidden labels are left out.
    """
    return {result.task: _task_metrics(result.scores) for result in results}


def _task_metrics(scores: TaskScores) -> dict[str, Any]:
    splits = scores.scored_splits
    return {
        "teachers": {
            name: {
                split: teacher.scores[split] | teacher.details.scores[split]
                for split in splits
                if teacher.scores[split] is not None
            }
            for name, teacher in scores.teachers.items()
        },
        "methods": {name: _method_metrics(method, splits) for name, method in scores.methods.items()},
    }


def _method_metrics(method: MethodScores, splits: list[str]) -> dict[str, Any]:
    if not splits:
        # Nothing is labelled.
        return {split: {"agreement": v} for split, v in method.agreement.items() if v is not None}
    by_split: dict[str, Any] = {}
    for split in splits:
        by_split[split] = {
            metric: {"mean": value.mean, "std": value.std} for metric, value in method.scores[split].items()
        }
        if method.agreement[split] is not None:
            by_split[split]["agreement"] = method.agreement[split]
        for detail, value in method.details.scores[split].items():
            by_split[split][detail] = {"mean": value.mean, "std": value.std}
        if gain := method.gain[split]:
            # With one seed there is neither p.
            kept = gain.model_dump(include={"difference", "p", "p_holm"}, exclude_none=True)
            by_split[split]["gain"] = kept
    return by_split


def read_speed(layout: Layout, task: str) -> TaskSpeed | None:
    """Return a task's timings, or None if there are none."""
    path = layout.speed(task)
    return TaskSpeed.read(path) if path.exists() else None
