"""Reads the tasks' results, and flattens them into the plain numbers of ``metrics.json``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.results.schema import MethodScores, SeedScores, TaskScores
from pipeline_lib.results.speed import TaskSpeed


@dataclass(frozen=True)
class TaskResult:
    """One task's scores, and its timings if speed was measured."""

    task: str
    scores: TaskScores
    speed: TaskSpeed | None = None


def read_results(layout: Layout, tasks: list[str]) -> list[TaskResult]:
    """Read the scores of every task."""
    return [TaskResult(task, TaskScores.read(layout.scores(task))) for task in tasks]


def read_finished(layout: Layout, tasks: list[str]) -> list[TaskResult]:
    """Read the scores of the tasks that have some, with timings if there are any."""
    finished = [task for task in tasks if layout.scores(task).exists()]
    if not finished:
        raise PotstillError(
            f"{layout.results(tasks[0])}: no results yet for {', '.join(tasks)}. Run `distill run` first."
        )
    return [TaskResult(task, TaskScores.read(layout.scores(task)), read_speed(layout, task)) for task in finished]


def metrics(results: list[TaskResult]) -> dict[str, Any]:
    """Return ``{task: {teachers: {...}, methods: {...}}}`` of plain numbers, for ``dvc metrics``.

    For example ``movies.methods.bilstm.test.accuracy.mean``. Splits with hidden labels are left out.
    """
    return {result.task: _task_metrics(result.scores) for result in results}


def _task_metrics(scores: TaskScores) -> dict[str, Any]:
    splits = scores.scored_splits
    teachers = {
        name: {
            split: teacher.scores[split] | teacher.details.scores[split]
            for split in splits
            if teacher.scores[split] is not None
        }
        for name, teacher in scores.teachers.items()
    }
    return {"teachers": teachers, "methods": {n: _method_metrics(m, splits) for n, m in scores.methods.items()}}


def _method_metrics(method: MethodScores, splits: list[str]) -> dict[str, Any]:
    if not splits:
        # Nothing is labelled.
        return {split: {"agreement": v} for split, v in method.agreement.items() if v is not None}
    by_split: dict[str, Any] = {}
    for split in splits:
        scored = _without_seeds(method.scores[split])
        if method.agreement[split] is not None:
            scored["agreement"] = method.agreement[split]
        scored |= _without_seeds(method.details.scores[split])
        if gain := method.gain[split]:
            # With one seed there is neither p.
            scored["gain"] = gain.model_dump(include={"difference", "p", "p_holm"}, exclude_none=True)
        by_split[split] = scored
    return by_split


def _without_seeds(scores: Mapping[str, SeedScores]) -> dict[str, Any]:
    return {name: {"mean": value.mean, "std": value.std} for name, value in scores.items()}


def read_speed(layout: Layout, task: str) -> TaskSpeed | None:
    """Return a task's timings, or None if there are none."""
    path = layout.speed(task)
    return TaskSpeed.read(path) if path.exists() else None
