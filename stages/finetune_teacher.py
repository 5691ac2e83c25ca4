"""Fine-tune the teacher on one task's original training set, or take a finished checkpoint.

    python stages/finetune_teacher.py --task movies

Reads data/tasks/<task> and data/raw/teacher; writes data/teachers/<task>: a transformers model
folder, training.json and search.json.  What was fine-tuned before is found; if killed, it resumes
from its last checkpoint.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.progress import show_progress
from pipeline_lib.engine import make_engine
from pipeline_lib.params import Params, load_params


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Fine-tune the teacher on one task's original training set, or take a finished checkpoint."""
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.teachers.finetuning import Data, import_teacher

    params, layout = load_params(), Layout()
    device = resolve_device(params.device)
    folder = clear_folder(layout.teacher(task))
    if params.teacher.checkpoint is None:
        record = finetune(params, task, str(device), folder)
    else:
        splits = Data.read(layout.split(task, "train")), Data.read(layout.split(task, "dev"))
        finished = layout.imported_teacher(task)
        record = import_teacher(finished, folder, splits, params.task(task), params, device)
    typer.echo(f"{task}: {record['metric']} {record['best_dev']:.4f} on dev")


def finetune(params: Params, task: str, device: str, folder: Path) -> dict[str, Any]:
    """Fine-tune at every learning rate; link the best teacher into ``folder``."""
    from pipeline_lib.teachers.finetuning import TeacherTraining, teacher_row
    from pipeline_lib.training.runs import Message
    from pipeline_lib.training.search import train_rows

    row = teacher_row(params, task, Layout(), device)
    done: dict[float, int] = {}
    with show_progress(f"fine-tuning {task}", "steps") as advance:

        def on_progress(training: TeacherTraining, message: Message) -> None:
            step, steps, loss, best = message
            done[training.rate] = step
            note = f"rate {training.rate:g}: loss {loss:.3f} best dev {max(best, 0):.4f}"
            advance(sum(done.values()), steps * len(row.rates), note)

        engine = make_engine(params, device, single_threaded=False)
        searched = train_rows([row], engine, on_progress)[task]
    [(training, record)] = searched.trainings.values()
    training.result.link_into(folder)
    searched.write(folder)
    return record


if __name__ == "__main__":
    run_stage(main)
