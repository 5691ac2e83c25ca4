"""Time the teacher and one student of each architecture on this machine, in one run.

    python -m pipeline_lib.stages.measure_speed --task movies

Reads data/tasks, data/teachers, data/students; writes data/speed/<task>.json.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.evaluation.speed import measure_task
from pipeline_lib.params import load_params


def main(task: Annotated[str, typer.Option(help="A task of params.yaml.")]) -> None:
    """Time the teacher and one student of each architecture on this machine."""
    layout = Layout()
    write_json(layout.speed(task), measure_task(load_params(), task, layout))


if __name__ == "__main__":
    run_stage(main)
