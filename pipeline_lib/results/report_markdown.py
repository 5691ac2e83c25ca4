"""The report as Markdown, without timings: what each task came to, its table and its caption."""

from collections.abc import Sequence
from pathlib import Path

from pipeline_lib.base.files import atomic_path
from pipeline_lib.params import Params
from pipeline_lib.results.captions import caption
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.detail_tables import TextTable, calibration, notes, routing, steps
from pipeline_lib.results.headline import headline
from pipeline_lib.results.retrieval_tables import MeasuredTable
from pipeline_lib.results.table_rows import TableLine, rows

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


def write_report(
    path: Path,
    results: list[TaskResult],
    params: Params,
    measured: Sequence[MeasuredTable] = (),
) -> None:
    """Write the report of all tasks and other measurements; equal scores give equal bytes."""
    parts = ["# Results", ""]
    parts += [line for result in results for line in (headline(result, timed=False), "")]
    parts += [*(line for result in results for line in _task(result, params))]
    parts += [line for table in measured for line in _measured(table)]
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
        *_details(result),
    ]


def _measured(measurements: MeasuredTable) -> list[str]:
    lines = _lines(measurements.header, measurements.rows)
    return [
        f"## {measurements.title}",
        "",
        *lines,
        "",
        *(f"- {line}" for line in measurements.caption),
        "",
    ]


def _details(result: TaskResult) -> list[str]:
    """Return the tables besides the scores, without timings, which differ from run to run."""
    tables = [steps(result), calibration(result), routing(result, timed=False)]
    lines = [line for one in tables if one is not None for line in _titled(one)]
    return [*lines, *(f"- {line}" for line in notes(result, timed=False)), ""]


def _titled(details: TextTable) -> list[str]:
    columns = {"System": details.systems} | {
        k: v for part in details.columns for k, v in part.items()
    }
    heads = [" ".join(head.split()) for head in columns]
    cells = [
        [" ".join(cell.split()) for cell in row] for row in zip(*columns.values(), strict=True)
    ]
    return [f"### {details.title}", "", *_lines(heads, cells), ""]


def table(table_rows: list[TableLine]) -> list[str]:
    """Return the lines of a Markdown table."""
    return _lines(
        list(COLUMNS.values()), [[getattr(row, n) for n in COLUMNS] for row in table_rows]
    )


def _lines(header: list[str], rows: list[list[str]]) -> list[str]:
    return [_line(cells) for cells in (header, ["---"] + ["---:"] * (len(header) - 1), *rows)]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
