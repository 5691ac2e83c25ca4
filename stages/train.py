"""Train one task's students: every row of the task, once per seed.

    python -m pipeline_lib.stages.train --task movies

Reads data/tasks, data/transfer and data/outputs of the task, what its rows start from (data/raw/models,
data/encoders, data/joint) and data/teachers/<task>, if one runs beside a student; writes data/vocabularies/<task>, a
tokenizer and the words' initial vectors, and data/students/<task>/<method>/<seed>, beside them search.json: the
learning rate that was chosen. What was trained before is reused; if killed, it resumes from the last checkpoints.  A
row without an optimiser uses the students of a joint training as they are; a row that starts from another is trained
after it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.params import Params, load_params
from pipeline_lib.shards.engine import make_engine
from pipeline_lib.shards.training_texts import training_texts
from pipeline_lib.training.distillation.plans import Plan, make_plan

if TYPE_CHECKING:
    from pipeline_lib.training.distillation.students import StudentTraining
    from pipeline_lib.training.search import Searched, TrainingRow


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Train one task's students: every row of the task, once per seed."""
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.training.distillation.encoded_sets import encode_sets
    from pipeline_lib.training.distillation.regressions import student_row
    from pipeline_lib.training.distillation.students import plans_in_turn, take_students
    from pipeline_lib.training.progress import on_dev, show_training
    from pipeline_lib.training.search import train_rows

    params, layout = load_params(), Layout()
    methods, device = params.methods_of(task), str(resolve_device(params.device))
    make_vocabulary(params, task, layout)
    inputs = layout.vocabulary(task), layout.split(task, "dev"), params.seeds, device
    plans = [make_plan(params, task, method, layout) for method in sorted(methods)]
    target = fresh_folder(layout.students(task))
    for plan in (plan for plan in plans if plan.optimiser is None):
        records = take_students(plan, params.seeds, target / plan.method)
        scores = ", ".join(map(on_dev, records.values()))
        say(f"{task} {plan.method}: dev {scores} (seeds {params.seeds}, from {plan.start})")

    def rows_of(turn: list[Plan]) -> "list[TrainingRow[StudentTraining]]":
        return [student_row(plan, *inputs) for plan in turn]

    turns = plans_in_turn(plans)
    everything = rows_of([plan for turn in turns for plan in turn])
    encoders, trainers = make_engine(params, "cpu"), make_engine(params, device)
    trained: dict[str, Searched[StudentTraining]] = {}
    with show_training(f"training {task}", everything, _note) as shown:
        for turn in turns:
            rows = rows_of([plan.started(layout, params.seeds) for plan in turn])
            encode_sets(rows, encoders)
            searched = train_rows(rows, trainers, shown.on_progress, shown.on_done)
            for method, result in searched.items():
                _link(result, target / method)
            trained |= searched
    for method, result in trained.items():
        _tell(f"{task} {method}", result)


def make_vocabulary(params: Params, task: str, layout: Layout) -> None:
    """Choose the students' words, and give every word its initial vector."""
    from pipeline_lib.models.students.vocabulary import vector_source, write_vocabulary

    settings, texts = params.vocabulary, training_texts(layout.split(task, "train"))
    folder, source = fresh_folder(layout.vocabulary(task)), vector_source(settings, layout)
    words, width = write_vocabulary([texts], settings, source, folder)
    say(f"{task}: {words:,} words, {width} values each")


def _note(training: "StudentTraining", loss: float, best: float) -> str:
    from pipeline_lib.training.progress import losses

    return f"{training.plan.method} {training.seed}: {losses(training, loss, best)}"


def _link(result: "Searched[StudentTraining]", folder: Path) -> None:
    for seed, (training, _) in result.trainings.items():
        training.result.link_into(folder / str(seed))
    result.write(folder)


def _tell(name: str, result: "Searched[StudentTraining]") -> None:
    from pipeline_lib.training.progress import on_dev

    [(first, record), *_] = result.trainings.values()
    if first.plan.objective.is_of_layers:
        what, scores = "loss on dev", [f"{-training.best_dev:.4f}" for training in result.records]
    else:
        what, scores = "dev", [on_dev(training) for training in result.records]
    say(f"{name}: {what} {', '.join(scores)} (seeds {[*result.trainings]}, rate {result.rate:g})")
    if missing := record.unanswered:
        say(f"  trained on {record.rows:,} rows: {missing:,} have no answer from the teacher")


if __name__ == "__main__":
    run_stage(main)
