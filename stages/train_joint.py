"""Train the students that several tasks share: one row of `joint`, once per seed.

    python -m pipeline_lib.stages.train_joint --joint mtl

Reads data/tasks, data/transfer and data/outputs of the tasks that the row names, data/raw/models and
data/raw/vectors; writes data/joint/<name>/vocabulary and data/joint/<name>/<seed>: training.json, and a folder per
task with its student.  What was trained before is reused; if killed, it resumes from the last checkpoints.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.params import load_params
from pipeline_lib.shards.engine import make_engine


def main(joint: Annotated[str, typer.Option(help="A row of `joint`.")]) -> None:
    """Train the students of a row of `joint`, once per seed."""
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.training.distillation.encoded_sets import encode_sets
    from pipeline_lib.training.distillation.joint import (
        JointTraining,
        joint_row,
        write_joint_vocabulary,
        write_students,
    )
    from pipeline_lib.training.progress import losses, on_dev, show_training
    from pipeline_lib.training.search import train_rows

    params, layout = load_params(), Layout()
    settings, device = params.joint_row(joint), str(resolve_device(params.device))
    fresh_folder(layout.joint(joint))
    if params.reads_words(settings):
        words = write_joint_vocabulary(params, joint, layout)
        say(f"{joint}: {words:,} words of {', '.join(settings.tasks)}")
    row = joint_row(params, joint, layout, device)
    encode_sets([row], make_engine(params, "cpu"))

    def note(training: JointTraining, loss: float, best: float) -> str:
        return f"{training.name} {training.seed}: {losses(training, loss, best)}"

    with show_training(f"training jointly {joint}", [row], note) as shown:
        engine = make_engine(params, device)
        searched = train_rows([row], engine, shown.on_progress, shown.on_done)[joint]
    write_students(searched, layout)
    scores = ", ".join(map(on_dev, searched.records))
    say(f"{joint}: mean dev {scores} (seeds {params.seeds}, rate {searched.rate:g})")


if __name__ == "__main__":
    run_stage(main)
