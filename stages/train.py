"""Train one task's students: every row of the task, once per seed.

    python stages/train.py --task movies

Reads data/plans/<task> and what the plans name, data/tasks/<task>/dev, and
data/vocabularies/<task>; writes data/students/<task>/<method>/<seed>, and beside a method's
students search.json: the learning rate that was taken.  What is trained already is found; if
killed, it resumes from the last checkpoints.  A row without an optimiser takes the students of a
joint training as they are; a row that starts from another is trained after it.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.progress import show_progress
from pipeline_lib.distillation.plans import read_plans
from pipeline_lib.engine import make_engine
from pipeline_lib.params import load_params


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Train one task's students: every row of the task, once per seed."""
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.distillation.data import encode_sets
    from pipeline_lib.distillation.students import (
        StudentTraining,
        plans_in_turn,
        student_row,
        take_students,
    )
    from pipeline_lib.training.runs import Message
    from pipeline_lib.training.search import Searched, train_rows

    params, layout = load_params(), Layout()
    device = str(resolve_device(params.device))
    inputs = layout.vocabulary(task), layout.split(task, "dev"), params.seeds, device
    plans = read_plans(layout.plans(task))
    target = clear_folder(layout.students(task))
    for plan in (plan for plan in plans if plan.optimiser is None):
        records = take_students(plan, params.seeds, target / plan.method)
        scores = ", ".join(f"{record['best_dev']:.4f}" for record in records.values())
        typer.echo(f"{task} {plan.method}: dev {scores} (seeds {params.seeds}, from {plan.start})")
    turns = plans_in_turn(plans)
    total = sum(student_row(plan, *inputs).planned_steps for turn in turns for plan in turn)
    finished: dict[tuple[str, int, float], int] = {}
    with show_progress(f"training {task}", "steps") as advance:

        def on_progress(training: StudentTraining, message: Message) -> None:
            step, steps, loss, best = message
            finished[training.name] = training.planned_steps * step // steps
            row = f"{training.plan.method} {training.seed}"
            of_layers = training.plan.objective.is_of_layers
            found = f"loss on dev {-best:.4f}" if of_layers else f"best dev {max(best, 0):.4f}"
            advance(sum(finished.values()), total, f"{row}: loss {loss:.3f} {found}")

        def on_done(training: StudentTraining) -> None:
            finished[training.name] = training.planned_steps

        encoders, trainers = make_engine(params, "cpu"), make_engine(params, device)
        trained: dict[str, Searched[StudentTraining]] = {}
        for turn in turns:
            told = [plan.started(layout, params.seeds) for plan in turn]
            rows = [student_row(plan, *inputs) for plan in told]
            encode_sets(rows, encoders)
            searched = train_rows(rows, trainers, on_progress, on_done)
            for method, found in searched.items():
                for seed, (training, _) in found.trainings.items():
                    training.result.link_into(target / method / str(seed))
                found.write(target / method)
            trained |= searched
    for method, found in trained.items():
        [(first, _), *_] = found.trainings.values()
        name, sign = ("loss on dev", -1) if first.plan.objective.is_of_layers else ("dev", 1)
        scores = ", ".join(f"{sign * record['best_dev']:.4f}" for record in found.records)
        typer.echo(f"{task} {method}: {name} {scores} (seeds {params.seeds}, rate {found.rate:g})")
        [record, *_] = found.records
        if missing := record["unanswered"]:
            typer.echo(
                f"  trained on {record['rows']:,} rows: {missing:,} have no answer of the teacher"
            )


if __name__ == "__main__":
    run_stage(main)
