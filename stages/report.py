"""Gather everything into metrics.json, data/report/results.md and the page beside it.

    python -m pipeline_lib.stages.report

Reads data/results of every task in params.yaml and of the rows of `retrieval` and `similarity`,
data/speed, the records of trained models and of what was fetched, and the shard sets, for sample
rows; writes data/report: results.md, index.html, the page's content as report.json, learning curves
and accuracy_speed.csv for `dvc plots`; and metrics.json with all scores, summary.json with a few.
"""

from dataclasses import asdict
from pathlib import Path

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, write_json
from pipeline_lib.base.flow import read_flow
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.base.workspace import PIPELINE
from pipeline_lib.inspection.work_lists import work_lists
from pipeline_lib.params import load_params
from pipeline_lib.report.page import write_content, write_page
from pipeline_lib.report.plots import summary, write_accuracy_speed, write_curves
from pipeline_lib.results.collect import metrics, read_finished, read_results
from pipeline_lib.results.content import page_content
from pipeline_lib.results.provenance import provenance
from pipeline_lib.results.report_markdown import write_report
from pipeline_lib.results.retrieval_tables import read_measured
from pipeline_lib.sources.run_sources import source_rows

MAX_ROWS = 30
"""The most rows of each work list; `distill shards worklist` shows more."""


def main() -> None:
    """Gather everything into metrics.json, data/report/results.md and the page beside it."""
    params, layout = load_params(), Layout()
    results = read_results(layout, list(params.tasks))
    measured = read_measured(params, layout)
    write_report(layout.report, results, params, measured)
    write_json(Path("metrics.json"), metrics(results))
    write_json(Path("summary.json"), summary(results))
    # With the timings, which differ from run to run and are only on the page.
    finished = read_finished(layout, list(params.tasks))
    lists = {task: [*map(asdict, work_lists(layout, params, task, MAX_ROWS))] for task in params.tasks}
    content = page_content(params, layout, finished, measured, lists)
    content["provenance"] = provenance(params, layout, read_flow(PIPELINE, layout), source_rows(params, layout))
    write_curves(fresh_folder(layout.curves), content["tasks"])
    write_accuracy_speed(layout.accuracy_speed, content["tasks"])
    write_content(layout.page_content, content)
    write_page(layout.page, content)
    say(f"report: {layout.page}")


if __name__ == "__main__":
    run_stage(main)
