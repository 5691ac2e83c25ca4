"""Resolve the rows of one task: what their training depends on.

    python stages/plan.py --task movies

Reads the manifests below data/transfer/<task> and data/outputs/<task>; writes
data/plans/<task>/<method>.json, and data/rows/<task>.json for what scores and times them.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.distillation.plans import make_plan, task_rows, write_plan
from pipeline_lib.params import load_params


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Resolve the rows of one task."""
    params, layout = load_params(), Layout()
    folder = clear_folder(layout.plans(task))
    for method in params.methods_of(task):
        write_plan(folder / f"{method}.json", make_plan(params, task, method, layout))
    write_json(layout.rows(task), task_rows(params, task))


if __name__ == "__main__":
    run_stage(main)
