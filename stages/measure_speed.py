"""Export the best student, and time teachers and students on this machine.

    python -m pipeline_lib.stages.measure_speed --task movies

Reads data/tasks, data/teachers, data/students and data/results; writes data/speed/<task>.json and
data/exports/<task>, the best student on dev in ONNX int8.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.layout import Layout
from pipeline_lib.exports.speed import measure_task
from pipeline_lib.params import load_params


def main(task: Annotated[str, typer.Option(help="A task of params.yaml.")]) -> None:
    """Export the best student, and time teachers and students on this machine."""
    layout = Layout()
    measure_task(load_params(), task, layout).write(layout.speed(task))


if __name__ == "__main__":
    run_stage(main)
