"""Train one task's students: every row of the task, once per seed.

    python stages/train.py --task movies

Reads data/plans/<task> and what the plans name, data/tasks/<task>/dev, and
data/vocabularies/<task>; writes data/students/<task>/<method>/<seed>.  What is trained already is
found; killed, it goes on from the last checkpoints.
"""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.progress import show_progress
from pipeline_lib.distillation.plans import read_plans
from pipeline_lib.params import load_params


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Train one task's students: every row of the task, once per seed."""
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.distillation.students import Row, TrainingJob, train_rows
    from pipeline_lib.engine.local import worker_count

    params = load_params()
    device = str(resolve_device(params.device))
    vocabulary, dev = Path("data/vocabularies") / task, Path("data/tasks") / task / "dev"
    plans = read_plans(Path("data/plans") / task)
    rows = [Row(plan, vocabulary, dev, params.seeds, device) for plan in plans]
    total = sum(row.planned_steps for row in rows)
    finished: dict[tuple[str, int, float], int] = {}
    with show_progress(f"training {task}", "steps") as advance:

        def hear(job: TrainingJob, message: tuple[int, int, float, float]) -> None:
            step, steps, loss, best = message
            finished[job.name] = job.planned_steps * step // steps
            note = f"{job.plan.method} {job.seed}: loss {loss:.3f} best dev {max(best, 0):.4f}"
            advance(sum(finished.values()), total, note)

        def done(job: TrainingJob) -> None:
            finished[job.name] = job.planned_steps

        workers = worker_count(device, params.workers)
        records = train_rows(rows, Path("data/students") / task, workers, hear, done)
    for method, found in records.items():
        scores = ", ".join(f"{record['best_dev']:.4f}" for record in found)
        rate = found[0]["settings"]["learning_rate"]
        typer.echo(f"{task} {method}: dev {scores} (seeds {params.seeds}, rate {rate:g})")


if __name__ == "__main__":
    run_stage(main)
