"""Gathers all tasks' scores into metrics.json and data/report/results.md.

    python stages/report.py

Reads data/results/<task>/scores.json of every task in params.yaml, and those of the rows of
`retrieval` and `similarity`.
"""

from pathlib import Path

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import load_params
from pipeline_lib.report.collect import metrics, read_results
from pipeline_lib.report.markdown import write_report
from pipeline_lib.report.measured import read_measured


def main() -> None:
    """Gather all tasks' scores into metrics.json and data/report/results.md."""
    params = load_params()
    results = read_results(Layout(), list(params.tasks))
    write_report(Layout().report, results, params, read_measured(params, Layout()))
    write_json(Path("metrics.json"), metrics(results))


if __name__ == "__main__":
    run_stage(main)
