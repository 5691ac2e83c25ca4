"""Tune one teacher on several tasks at once: one encoder, with a head for each task.

    python -m pipeline_lib.stages.refine_teacher --teacher refined

Reads data/tasks and data/raw/models; writes data/refined/<teacher>/<task>: one task's transformers
model folder, training.json and search.json.  If killed, it resumes from the last checkpoint.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.params import load_params
from pipeline_lib.shards.engine import make_engine


def main(teacher: Annotated[str, typer.Option(help="A name in `refined`.")]) -> None:
    """Tune a teacher of kind ``refined`` on all of its tasks."""
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.training.progress import losses, on_dev, show_training
    from pipeline_lib.training.search import train_rows
    from pipeline_lib.training.teachers.refining import RefinedTraining, refined_row

    params, layout = load_params(), Layout()
    device = str(resolve_device(params.device))
    row = refined_row(params, params.refined_teacher(teacher), layout, device)
    engine = make_engine(params, device, single_threaded=False)
    fresh_folder(layout.refined_teachers(teacher))

    def note(training: RefinedTraining, loss: float, best: float) -> str:
        return f"rate {training.rate:g}: {losses(training, loss, best)}"

    with show_training(f"refining {teacher}", [row], note) as shown:
        searched = train_rows([row], engine, shown.on_progress, shown.on_done)[teacher]
    [(training, record)] = searched.trainings.values()
    folders = {task: layout.refined_teacher(teacher, task) for task in training.tasks}
    training.write(folders, record)
    for folder in folders.values():
        searched.write(folder)
    say(f"{teacher}: {on_dev(record)} on dev, over {len(folders)} tasks")


if __name__ == "__main__":
    run_stage(main)
