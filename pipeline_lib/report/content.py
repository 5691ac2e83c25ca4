"""Gathers what the page shows, as plain values: the content of ``report.json``."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_record
from pipeline_lib.base.flow import read_flow
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.work_lists import work_lists
from pipeline_lib.params import Params
from pipeline_lib.report.checks import task_checks
from pipeline_lib.report.provenance import provenance
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.diagrams import confusion_of, label_table, read_outputs, reliability_of
from pipeline_lib.results.headline import headline
from pipeline_lib.results.schema import Gain, TaskScores
from pipeline_lib.results.speed import Kind, folder_bytes
from pipeline_lib.results.table import Table
from pipeline_lib.results.tables import CHANGED, not_run, rate, task_tables
from pipeline_lib.results.trainings import encoder_curves, task_curves

FORMAT = 2
"""Version of the layout of ``report.json``."""
MAX_ROWS = 30
"""The most rows of each work list; `distill shards worklist` shows more."""


def page_content(
    params: Params, layout: Layout, results: list[TaskResult], measured: list[Table], pipeline: Path = Path("dvc.yaml")
) -> dict[str, Any]:
    """Gather everything that the page shows; see docs/report.md for the keys.

    Two runs over the same data have the same content, ``provenance`` apart.

    :param pipeline: dvc.yaml, for the flow.
    """
    flow = read_flow(pipeline, layout)
    content = {
        "format": FORMAT,
        "tasks": [_task(params, layout, result) for result in results],
        "encoders": encoder_curves(params, layout),
        "measured": [table.plain() for table in measured],
        "provenance": provenance(params, layout, "dvc repro", flow),
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
    outputs = read_outputs(layout, task, scores)
    several = scores.of_kind.has_several
    tables = {name: table.plain() for name, table in task_tables(result, timed=True).items()}
    further = [t.plain() for one in scores.further_splits for t in task_tables(result, True, one).values()]
    by_label = f"{task}: F1 by label on {split}"
    return {
        "task": task,
        "split": split,
        "kind": scores.kind,
        "is_score": not scores.of_kind.has_probabilities,
        "has_several": several,
        "headline": headline(result),
        "caption": [*tables["scores"]["caption"], *not_run(result, params)],
        "scores": scores.model_dump(),
        "speed": result.speed and result.speed.model_dump(),
        "tables": {
            **dict.fromkeys(("speed", "steps", "calibration", "routing")),
            **tables,
            "further": further,
            "labels": None
            if outputs is None or not several
            else label_table(by_label, *outputs, scores.labels).plain(),
        },
        "checks": task_checks(task, scores, layout),
        "systems": _systems(result, layout),
        "gains": _gains(scores),
        "steps": _steps(scores),
        "reliability": {} if outputs is None else reliability_of(*outputs, scores.kind),
        "confusion": None if outputs is None or several else confusion_of(*outputs, scores.labels, scores.kind),
        "routing": _routing(result),
        "curves": task_curves(params, task, layout),
        "importance": _importance(layout.importance(task)),
        "work_lists": [asdict(one) for one in work_lists(layout, params, task, MAX_ROWS)],
    }


def _systems(result: TaskResult, layout: Layout) -> list[dict[str, Any]]:
    """Return the score and the cost of each teacher and method: speed, parameters, bytes.

    Speed is on one core in the form that is fastest there; bytes are those of the model in torch.
    """
    scores, systems = result.scores, []
    split, metric = scores.decisive_split, scores.metric
    for name, teacher in scores.teachers.items():
        scored = teacher.scores[split]
        systems.append(
            {
                "system": f"teacher {name}",
                "score": None if scored is None else scored[metric],
                "std": None,
                **_fastest(result, "teachers", name),
                "parameters": teacher.parameters and teacher.parameters.with_embeddings,
                "bytes": _bytes(layout.teacher(result.task, name)),
            }
        )
    for name, method in scores.methods.items():
        scored = method.scores[split]
        seeds = list(method.training.best_step)
        systems.append(
            {
                "system": name,
                "score": None if scored is None else scored[metric].mean,
                "std": None if scored is None or len(seeds) < 2 else scored[metric].std,
                **_fastest(result, "students", method.student),
                "parameters": method.parameters.with_embeddings,
                "bytes": _bytes(layout.student(result.task, name, int(seeds[0]))),
            }
        )
    return systems


def _fastest(result: TaskResult, kind: Kind, name: str) -> dict[str, Any]:
    fastest = result.speed and result.speed.fastest(kind, name)
    if not fastest:
        return {"form": None, "rate": None}
    return {"form": fastest[0], "rate": fastest[1].rates["one_core"].median}


def _bytes(folder: Path) -> int | None:
    return folder_bytes(folder) if (folder / "config.json").exists() else None


def _gains(scores: TaskScores) -> list[dict[str, Any]]:
    """Return each row's gains over its baseline: in the metric, and in the other measures."""
    split, gains = scores.decisive_split, []
    for name, method in scores.methods.items():
        each: dict[str, Gain | None] = {scores.metric: method.gain[split]}
        each |= method.details.gain[split] or {}
        gains += [
            {"measure": measure, "method": name, "baseline": method.baseline, **gain.model_dump()}
            for measure, gain in each.items()
            if gain is not None and math.isfinite(gain.difference)
        ]
    return gains


def _steps(scores: TaskScores) -> list[dict[str, Any]]:
    """Return each row's gain over a row that differs from it in one thing."""
    split = scores.decisive_split
    named = [
        {"method": step.method, "baseline": step.previous, "changed": CHANGED[step.changed]} for step in scores.steps
    ]
    gains = [step.gain[split] for step in scores.steps]
    return [
        step | gain.model_dump()
        for step, gain in zip(named, gains, strict=True)
        if gain is not None and math.isfinite(gain.difference)
    ]


def _routing(result: TaskResult) -> dict[str, Any] | None:
    """Return every method's curve; cost is in time if speeds were measured, else in parameters."""
    scores, split = result.scores, result.scores.decisive_split
    routed = {name: method for name, method in scores.methods.items() if method.routing}
    if not routed:
        return None
    rates = {
        name: (rate(result, "teachers", method.teacher), rate(result, "students", method.student))
        for name, method in routed.items()
    }
    timed = all(all(pair) for pair in rates.values())

    def point(name: str, one: Any) -> dict[str, float]:
        teacher, student = rates[name]
        cost = teacher / student + one.routed[split] if timed else one.cost[split]
        accuracy = one.accuracy[split].mean
        return {"routed": one.routed[split], "cost": round(cost, 4), "accuracy": accuracy}

    curves = [
        {
            "system": name,
            "teacher_accuracy": method.routing.teacher_accuracy[split],
            "best": point(name, method.routing.best),
            "curve": [point(name, one) for one in method.routing.curve],
        }
        for name, method in routed.items()
    ]
    return {"cost": "time" if timed else "parameters", "methods": curves}


def _importance(path: Path) -> dict[str, Any] | None:
    """Return the word importance that ``evaluate`` found for a few rows, or None."""
    try:
        importance = read_record(path)
    except PotstillError:
        return None
    return importance if importance.get("examples") else None
