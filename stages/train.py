"""Train one task's students: every row of the task, once per seed.

    python stages/train.py --task movies

Reads data/plans/<task> and what the plans name, data/tasks/<task>/dev, and
data/vocabularies/<task>; writes data/students/<task>/<method>/<seed>.  What is trained already is
found; killed, it goes on from the last checkpoints.
"""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.params import load_params
from pipeline_lib.plans import read_plans
from pipeline_lib.progress import show_progress
from pipeline_lib.stage import run_stage


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Train one task's students: every row of the task, once per seed."""
    from pipeline_lib.devices import resolve_device
    from pipeline_lib.distillation import TrainingJob, planned_steps, train_students
    from pipeline_lib.engine import worker_count

    params = load_params()
    device = str(resolve_device(params.device))
    vocabulary, dev = Path("data/vocabularies") / task, Path("data/tasks") / task / "dev"
    jobs = [
        TrainingJob(plan, vocabulary, dev, seed, device)
        for plan in read_plans(Path("data/plans") / task)
        for seed in params.seeds
    ]
    steps, totals = [0] * len(jobs), [planned_steps(job.plan) for job in jobs]
    with show_progress(f"training {task}", "steps") as advance:

        def hear(job: int, message: tuple[int, int, float, float]) -> None:
            steps[job], totals[job], loss, best = message
            name = f"{jobs[job].plan.method} {jobs[job].seed}"
            note = f"{name}: loss {loss:.3f} best dev {max(best, 0):.4f}"
            advance(sum(steps), sum(totals), note)

        def done(job: int) -> None:
            steps[job] = totals[job]

        workers = worker_count(device, params.workers)
        records = train_students(jobs, Path("data/students") / task, workers, hear, done)
    for method in dict.fromkeys(job.plan.method for job in jobs):
        scores = ", ".join(f"{records[method, seed]['best_dev']:.4f}" for seed in params.seeds)
        typer.echo(f"{task} {method}: dev {scores} (seeds {params.seeds})")


if __name__ == "__main__":
    run_stage(main)
