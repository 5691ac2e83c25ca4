"""Reads the tasks' results, and flattens them to the plain numbers of ``metrics.json``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import read_json, read_record
from pipeline_lib.base.layout import Layout


@dataclass(frozen=True)
class TaskResult:
    """One task's ``scores.json``, and its ``speed/<task>.json`` where it was measured."""

    task: str
    scores: dict[str, Any]
    speed: dict[str, Any] | None = None


def read_results(layout: Layout, tasks: list[str]) -> list[TaskResult]:
    """Read the scores of every task.

    :param layout: of all artifacts.
    :raises DistilleryError: if a task has none yet.
    """
    return [TaskResult(task, _read_scores(layout, task)) for task in tasks]


def read_finished(layout: Layout, tasks: list[str]) -> list[TaskResult]:
    """Read the scores of the tasks that have them, with timings where there are any.

    :raises DistilleryError: if no task has been evaluated.
    """
    finished = [task for task in tasks if _scores(layout, task).exists()]
    if not finished:
        raise DistilleryError(
            f"{layout.results(tasks[0])}: no results yet for {', '.join(tasks)}. Run `dvc repro` "
            "first."
        )
    return [
        TaskResult(task, _read_scores(layout, task), _speed(layout.speed(task)))
        for task in finished
    ]


def metrics(results: list[TaskResult]) -> dict[str, Any]:
    """Return ``{task: {teacher: ..., methods: {...}}}`` of plain numbers, for ``dvc metrics``.

    So ``movies.methods.bilstm.test.accuracy.mean``; splits whose labels are hidden are left out.
    """
    return {result.task: _task_metrics(result.scores) for result in results}


def _task_metrics(scores: dict[str, Any]) -> dict[str, Any]:
    teacher = {split: scores["teacher"][split] for split in _scored(scores)}
    methods = {name: _method_metrics(scores, own) for name, own in scores["methods"].items()}
    return {"teacher": teacher, "methods": methods}


def _method_metrics(scores: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for split in _scored(scores):
        found[split] = {
            metric: {name: own[split][metric][name] for name in ("mean", "std")}
            for metric in scores["metrics"]
        }
        found[split]["agreement"] = own["agreement"][split]
        if own["gain"][split] is not None:
            gain = own["gain"][split]
            tested = {name: gain[name] for name in ("p", "p_holm") if gain[name] is not None}
            found[split]["gain"] = {"difference": gain["difference"], **tested}
    return found


def _scored(scores: dict[str, Any]) -> list[str]:
    return [split for split, value in scores["teacher"].items() if _is_scored(value, scores)]


def _is_scored(value: Any, scores: dict[str, Any]) -> bool:
    return isinstance(value, dict) and scores["metric"] in value


def _read_scores(layout: Layout, task: str) -> dict[str, Any]:
    keys = ("metric", "metrics", "rows", "test", "selection", "evaluate", "floor", "teacher")
    return read_record(_scores(layout, task), *keys, "methods")


def _scores(layout: Layout, task: str) -> Path:
    return layout.results(task) / "scores.json"


def _speed(path: Path) -> dict[str, Any] | None:
    return read_json(path) if path.exists() else None
