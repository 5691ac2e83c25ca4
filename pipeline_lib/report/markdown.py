"""The report as Markdown: a table per task and what must be said beside it; no timings."""

from pathlib import Path

from pipeline_lib.base.files import atomic_path
from pipeline_lib.params import Params
from pipeline_lib.report.captions import caption
from pipeline_lib.report.collect import TaskResult
from pipeline_lib.report.rows import Row, rows

COLUMNS = {
    "system": "System",
    "dev": "Dev",
    "test": "Test",
    "gain": "Gain",
    "interval": "Interval",
    "p": "p (Holm)",
    "to_teacher": "To teacher",
    "agreement": "Agreement",
    "parameters": "Parameters (M)",
    "ratio": "Ratio",
    "rate": "Rate",
    "steps": "Steps × batch",
    "rows": "Rows",
}


def write_report(path: Path, results: list[TaskResult], params: Params) -> None:
    """Write the report of all tasks; equal scores give equal bytes."""
    parts = ["# Results", "", *(line for result in results for line in _task(result, params))]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")


def _task(result: TaskResult, params: Params) -> list[str]:
    scores = result.scores
    return [
        f"## {result.task} ({scores.metric}, gain on {scores.decisive_split})",
        "",
        *table([row for row in rows(result)]),
        "",
        *(f"- {line}" for line in caption(result, params)),
        "",
    ]


def table(given: list[Row]) -> list[str]:
    """Return the lines of a Markdown table."""
    head = [_line(list(COLUMNS.values())), _line(["---"] + ["---:"] * (len(COLUMNS) - 1))]
    return head + [_line([getattr(row, name) for name in COLUMNS]) for row in given]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
