"""Train the students that several tasks share: every row of `joint`, once per seed.

    python stages/train_joint.py

Reads data/tasks, data/transfer and data/outputs of the tasks that the rows name, data/raw/models
and data/raw/vectors; writes data/joint/<name>/vocabulary and data/joint/<name>/<seed>:
training.json, and a folder per task with its student.  What was trained before is reused; if
killed, it resumes from the last checkpoints.
"""

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.engine import make_engine
from pipeline_lib.params import load_params


def main() -> None:
    """Train the students that several tasks share: every row of `joint`, once per seed."""
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.distillation.data import encode_sets
    from pipeline_lib.distillation.joint import (
        JointTraining,
        joint_row,
        write_joint_vocabulary,
        write_students,
    )
    from pipeline_lib.training.progress import show_training
    from pipeline_lib.training.search import train_rows

    params, layout = load_params(), Layout()
    clear_folder(layout.all_joint)
    if not params.joint:
        typer.echo("no joint trainings in params.yaml")
        return
    device = str(resolve_device(params.device))
    with_words = [n for n, row in params.joint.items() if params.reads_words(row)]
    for name in with_words:
        words = write_joint_vocabulary(params, name, layout)
        typer.echo(f"{name}: {words:,} words of {', '.join(params.joint[name].tasks)}")
    rows = [joint_row(params, name, layout, device) for name in params.joint]
    encode_sets(rows, make_engine(params, "cpu"))

    def note(training: JointTraining, loss: float, best: float) -> str:
        row = f"{training.name} {training.seed}"
        return f"{row}: loss {loss:.3f} best dev {max(best, 0):.4f}"

    with show_training("training jointly", rows, note) as shown:
        engine = make_engine(params, device)
        searched = train_rows(rows, engine, shown.on_progress, shown.on_done)
    for name, found in searched.items():
        write_students(found, layout)
        scores = ", ".join(f"{record['best_dev']:.4f}" for record in found.records)
        typer.echo(f"{name}: mean dev {scores} (seeds {params.seeds}, rate {found.rate:g})")


if __name__ == "__main__":
    run_stage(main)
