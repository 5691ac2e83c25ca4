"""What the page shows, as plain values: the content of ``report.json``."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_record
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params
from pipeline_lib.results.checks import task_checks
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.diagrams import confusion_of, label_table, read_outputs, reliability_of
from pipeline_lib.results.headline import headline
from pipeline_lib.results.schema import RoutingPoint, TaskScores
from pipeline_lib.results.speed import Kind, folder_bytes
from pipeline_lib.results.table import Table
from pipeline_lib.results.tables import CHANGED, not_run, rate, task_tables
from pipeline_lib.results.trainings import encoder_curves, task_curves

FORMAT = 2


def page_content(
    params: Params,
    layout: Layout,
    results: Iterable[TaskResult],
    measured: Iterable[Table],
    work_lists: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """Gather what the page shows, provenance apart; see docs/report.md for the keys.

    Two runs over the same data have the same content.
    """
    content = {
        "format": FORMAT,
        "tasks": [_task(params, layout, result) | {"work_lists": work_lists[result.task]} for result in results],
        "encoders": encoder_curves(params, layout),
        "measured": [table.plain() for table in measured],
    }
    return _finite(content)


def _finite(value: Any) -> Any:
    """Return plain values with None for NaN and infinity, such as a correlation of constants."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _task(params: Params, layout: Layout, result: TaskResult) -> dict[str, Any]:
    task, scores, split = result.task, result.scores, result.scores.decisive_split
    several = scores.of_kind.has_several
    names = ("scores", "speed", "steps", "calibration", "routing", "further", "labels")
    tables = dict.fromkeys(names) | {name: table.plain() for name, table in task_tables(result, timed=True).items()}
    further = (table for s in scores.further_splits for table in task_tables(result, True, s).values())
    tables["further"] = [table.plain() for table in further]
    reliability, confusion = {}, None
    if outputs := read_outputs(layout, task, scores):
        reliability = reliability_of(*outputs, scores.kind)
        if several:
            tables["labels"] = label_table(f"{task}: F1 by label on {split}", *outputs, scores.labels).plain()
        else:
            confusion = confusion_of(*outputs, scores.labels, scores.kind)
    return {
        "task": task,
        "split": split,
        "kind": scores.kind,
        "is_score": not scores.of_kind.has_probabilities,
        "has_several": several,
        "headline": headline(result),
        "best": scores.best_on_dev(),
        "is_pair": params.task(result.task).is_pair,
        "caption": [*tables["scores"]["caption"], *not_run(result, params)],
        "scores": scores.model_dump(),
        "speed": result.speed and result.speed.model_dump(),
        "tables": tables,
        "checks": task_checks(task, scores, layout),
        "systems": _systems(result, layout),
        "gains": _gains(scores),
        "steps": _steps(scores),
        "reliability": reliability,
        "confusion": confusion,
        "routing": _routing(result),
        "curves": task_curves(params, task, layout),
        "importance": _importance(layout.importance(task)),
    }


def _systems(result: TaskResult, layout: Layout) -> list[dict[str, Any]]:
    """Return the score and the cost of each teacher and method: speed, parameters, bytes.

    Speed is on one core in the form that is fastest there; bytes are those of the model in torch.
    """
    scores, metric = result.scores, result.scores.metric
    systems = []
    for name, teacher in scores.teachers.items():
        scored = teacher.scores[scores.decisive_split]
        row = {"system": f"teacher {name}", "score": scored and scored[metric], "std": None}
        row |= _fastest(result, "teachers", name)
        row["parameters"] = teacher.parameters and teacher.parameters.with_embeddings
        systems.append(row | {"bytes": _bytes(layout.teacher(result.task, name))})
    for name, method in scores.methods.items():
        scored, seeds = method.scores[scores.decisive_split], list(method.training.best_step)
        row = {"system": name, "score": scored and scored[metric].mean}
        row["std"] = scored[metric].std if scored and len(seeds) > 1 else None
        row |= _fastest(result, "students", method.student)
        row["parameters"] = method.parameters.with_embeddings
        systems.append(row | {"bytes": _bytes(layout.student(result.task, name, int(seeds[0])))})
    return systems


def _fastest(result: TaskResult, kind: Kind, name: str) -> dict[str, Any]:
    form, timed = (result.speed and result.speed.fastest(kind, name)) or (None, None)
    return {"form": form, "rate": timed and timed.rates["one_core"].median}


def _bytes(folder: Path) -> int | None:
    return folder_bytes(folder) if (folder / "config.json").exists() else None


def _gains(scores: TaskScores) -> list[dict[str, Any]]:
    """Return each row's gains over its baseline: in the metric, and in the other measures."""
    split = scores.decisive_split
    return [
        {"measure": measure, "method": name, "baseline": method.baseline, **gain.model_dump()}
        for name, method in scores.methods.items()
        for measure, gain in {scores.metric: method.gain[split], **(method.details.gain[split] or {})}.items()
        if gain is not None and math.isfinite(gain.difference)
    ]


def _steps(scores: TaskScores) -> list[dict[str, Any]]:
    return [
        {"method": step.method, "baseline": step.previous, "changed": CHANGED[step.changed], **gain.model_dump()}
        for step in scores.steps
        if (gain := step.gain[scores.decisive_split]) is not None and math.isfinite(gain.difference)
    ]


def _routing(result: TaskResult) -> dict[str, Any] | None:
    """Return every method's curve; cost is in time if speeds were measured, else in parameters."""
    split = result.scores.decisive_split
    methods = result.scores.methods.items()
    routed = {name: method for name, method in methods if method.routing and method.routing.best.accuracy[split]}
    if not routed:
        return None
    rates = {
        name: (rate(result, "teachers", method.teacher), rate(result, "students", method.student))
        for name, method in routed.items()
    }
    timed = all(all(pair) for pair in rates.values())

    def plain(name: str, point: RoutingPoint) -> dict[str, float]:
        teacher, student = rates[name]
        cost = teacher / student + point.routed[split] if timed else point.cost[split]
        return {"routed": point.routed[split], "cost": round(cost, 4), "accuracy": point.accuracy[split].mean}

    curves = [
        {
            "system": name,
            "teacher_accuracy": method.routing.teacher_accuracy[split],
            "best": plain(name, method.routing.best),
            "curve": [plain(name, point) for point in method.routing.curve],
        }
        for name, method in routed.items()
    ]
    return {"cost": "time" if timed else "parameters", "methods": curves}


def _importance(path: Path) -> dict[str, Any] | None:
    try:
        importance = read_record(path)
    except PotstillError:
        return None
    return importance if importance.get("examples") else None
