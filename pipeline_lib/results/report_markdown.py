"""The report as Markdown, without timings: what each task came to, its table and its caption."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pipeline_lib.base.files import atomic_path
from pipeline_lib.params import Params
from pipeline_lib.results.captions import caption
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.detail_tables import calibration, notes, routing, steps
from pipeline_lib.results.further_tables import further_tables
from pipeline_lib.results.headline import headline
from pipeline_lib.results.markdown import bullets, escape
from pipeline_lib.results.table import Table
from pipeline_lib.results.table_rows import QUALITY, TRAINING, scores_table

COLUMNS = QUALITY | {"parameters": "Parameters (M)", "ratio": "Ratio"} | TRAINING


def write_report(path: Path, results: list[TaskResult], params: Params, measured: Sequence[Table] = ()) -> None:
    """Write the report of all tasks and other measurements; equal scores give equal bytes."""
    parts = ["# Results", ""]
    parts += [line for result in results for line in (escape(headline(result, timed=False)), "")]
    parts += [*(line for result in results for line in _task(result, params))]
    parts += [line for table in measured for line in _section("##", table)]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")


def _task(result: TaskResult, params: Params) -> list[str]:
    title = f"{result.task} ({result.scores.metric}, gain on {result.scores.decisive_split})"
    table = replace(scores_table(result, title, COLUMNS), caption=caption(result, params))
    return [*_section("##", table), *_details(result)]


def _details(result: TaskResult) -> list[str]:
    """Return the tables besides the scores, without timings, which differ from run to run."""
    tables = [steps(result), calibration(result), routing(result, timed=False)]
    lines = [line for table in tables if table for line in _section("###", table)]
    lines += [*bullets(map(escape, notes(result, timed=False))), ""]
    further = further_tables(result, timed=False)
    return [*lines, *(line for table in further for line in _section("###", table))]


def _section(marks: str, table: Table) -> list[str]:
    return [f"{marks} {escape(table.title)}", "", *table.markdown(), ""]
