"""Times the teacher and one student of each architecture on this machine, in one run.

    python stages/measure_speed.py --task movies

Reads data/tasks, data/teachers, data/students; writes data/speed/<task>.json.
"""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import write_json
from pipeline_lib.evaluation.speed import measure_task
from pipeline_lib.params import load_params


def main(task: Annotated[str, typer.Option(help="A task of params.yaml.")]) -> None:
    """Time the teacher and one student of each architecture on this machine."""
    write_json(Path("data/speed") / f"{task}.json", measure_task(load_params(), task, Path("data")))


if __name__ == "__main__":
    run_stage(main)
