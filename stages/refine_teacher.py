"""Tune teachers of several tasks at once: one encoder, with a head for each task.

    python stages/refine_teacher.py

Reads data/tasks and data/raw/models; writes data/refined/<task>/<teacher>: one task's transformers
model folder, training.json and search.json, and data/refined/<task>/teachers.json, their names.
If killed, it resumes from the last checkpoint.
"""

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.engine import make_engine
from pipeline_lib.params import load_params


def main() -> None:
    """Tune the teachers of kind ``refined`` on all of their tasks."""
    params, layout = load_params(), Layout()
    clear_folder(layout.refined)
    names = [name for name, own in params.teachers.items() if own.tuning.kind == "refined"]
    for task in params.tasks:
        own = [name for name in names if params.teachers[name].knows(task)]
        write_json(layout.refined / task / "teachers.json", own)
    if not names:
        typer.echo("no teacher of params.yaml is refined")
        return
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.teachers.refining import RefinedTraining, refined_teacher_row
    from pipeline_lib.training.progress import show_training
    from pipeline_lib.training.search import train_rows

    device = str(resolve_device(params.device))
    rows = [refined_teacher_row(params, name, layout, device) for name in names]
    engine = make_engine(params, device, single_threaded=False)

    def note(training: RefinedTraining, loss: float, best: float) -> str:
        return f"rate {training.rate:g}: loss {loss:.3f} best dev {max(best, 0):.4f}"

    with show_training("refining", rows, note) as shown:
        searched = train_rows(rows, engine, shown.on_progress, shown.on_done)
    for name, found in searched.items():
        [(training, record)] = found.trainings.values()
        folders = {task: layout.refined_teacher(task, name) for task in training.tasks}
        training.write(folders, record)
        for folder in folders.values():
            found.write(folder)
        typer.echo(f"{name}: {record['best_dev']:.4f} on dev, over {len(folders)} tasks")


if __name__ == "__main__":
    run_stage(main)
