"""Small files for `dvc plots` and `dvc metrics`: learning curves, accuracy and speed, a summary."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipeline_lib.base.files import atomic_path
from pipeline_lib.results.collect import TaskResult

LEAVES = 20
"""How many numbers the summary has at most, so that `dvc metrics diff` can be read at a glance."""


def summary(results: Sequence[TaskResult]) -> dict[str, dict[str, Any]]:
    """Return what each task's best student on dev is worth, in percent on the decisive split.

    Its score, its gain over its baseline, its teacher's score, their agreement, and its name; for
    many tasks the score alone.
    """
    each = max(1, LEAVES // max(1, len(results)))
    tasks = {result.task: _task_summary(result) for result in results}
    return {task: dict([*values.items()][:each]) for task, values in [*tasks.items()][:LEAVES] if values}


def _task_summary(result: TaskResult) -> dict[str, Any]:
    scores = result.scores
    best = scores.best_on_dev()
    if best is None:
        return {}
    student, split = scores.methods[best], scores.decisive_split
    scored, gain = student.scores[split], student.gain.get(split)
    taught = scores.teachers[student.teacher].scores[split]
    agreement = student.agreement[split]
    values = {
        "student": scored and scored[scores.metric].mean,
        "gain": gain and gain.difference,
        "teacher": taught and taught[scores.metric],
        "agreement": agreement,
    }
    percents = {name: round(100 * value, 1) for name, value in values.items() if value is not None}
    return percents | {"method": best}


def write_curves(folder: Path, tasks: Iterable[dict[str, Any]]) -> None:
    """Write ``<task>_<system>.csv`` for each learning curve of the first seed: step, loss, dev.

    :param tasks: of the page's content.
    """
    for task in tasks:
        first: dict[str, Any] = {}
        for curve in task["curves"]:
            first.setdefault(curve["system"], curve)
        for system, curve in first.items():
            columns = ("step", "loss", "dev")
            rows = [[evaluation[column] for column in columns] for evaluation in curve["history"]]
            write_csv(folder / f"{task['task']}_{system}.csv", columns, rows)


def write_accuracy_speed(path: Path, tasks: Iterable[dict[str, Any]]) -> None:
    """Write a line per teacher and student that was timed: its score, sentences per second.

    :param tasks: of the page's content.
    """
    rows = [
        (task["task"], row["system"].removeprefix("teacher "), row["score"], row["form"], row["rate"])
        for task in tasks
        for row in task["systems"]
        if row["form"] and row["score"] is not None
    ]
    write_csv(path, ("task", "system", "score", "form", "sentences_per_second"), rows)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as CSV, atomically."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
