"""The report as Markdown, without timings: what each task came to, its tables and their captions."""

from collections.abc import Sequence
from pathlib import Path

from pipeline_lib.base.files import atomic_path
from pipeline_lib.params import Params
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.headline import headline
from pipeline_lib.results.markdown import escape
from pipeline_lib.results.table import Table
from pipeline_lib.results.tables import all_tables


def write_report(path: Path, results: list[TaskResult], params: Params, measured: Sequence[Table] = ()) -> None:
    """Write the report of all tasks and other measurements; equal scores give equal bytes."""
    lines = ["# Results", ""]
    lines += [line for result in results for line in (escape(headline(result, timed=False)), "")]
    for result in results:
        scores, *others = all_tables(result, params, timed=False)
        lines += scores.section("##")
        lines += [line for table in others for line in table.section("###")]
    lines += [line for table in measured for line in table.section("##")]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(lines), encoding="utf-8")
