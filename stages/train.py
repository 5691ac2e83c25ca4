"""Train one method's students for one task, one per seed.

    python stages/train.py --task movies --method bilstm_kd_ts

Reads data/plans/<task>/<method>.json and what it names, data/tasks/<task>/dev, and
data/vocabularies/<task>; writes data/students/<task>/<method>/<seed>.  Killed, it goes on from the
last checkpoints.
"""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.files import clear_folder
from pipeline_lib.params import Params, load_params
from pipeline_lib.plans import Plan, read_plan
from pipeline_lib.progress import show_progress
from pipeline_lib.stage import run_stage


def main(
    task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")],
    method: Annotated[str, typer.Option(help="A key of `methods` in params.yaml.")],
) -> None:
    """Train one method's students for one task, one per seed."""
    plan = read_plan(Path("data/plans") / task / f"{method}.json")
    target = Path("data/students") / task / method
    if plan is None:
        # DVC runs every row for every task, and wants its folder.
        clear_folder(target)
        typer.echo(f"{task} {method}: its transfer set is not made for this task")
        return
    train(load_params(), plan, target)


def train(params: Params, plan: Plan, target: Path) -> None:
    """Train the plan's students, one per seed, into ``target``."""
    from pipeline_lib.devices import resolve_device
    from pipeline_lib.distillation import TrainingJob, train_seeds
    from pipeline_lib.engine import worker_count

    task, method = plan.task, plan.method
    device = str(resolve_device(params.device))
    vocabulary, dev = Path("data/vocabularies") / task, Path("data/tasks") / task / "dev"
    jobs = [TrainingJob(plan, vocabulary, dev, seed, device) for seed in params.seeds]
    steps = dict.fromkeys(range(len(jobs)), 0)
    with show_progress(f"training {task} {method}", "steps") as advance:

        def hear(job: int, message: tuple[int, int, float, float]) -> None:
            steps[job], total, loss, best = message
            note = f"loss {loss:.3f} best dev {max(best, 0):.4f}"
            advance(sum(steps.values()), total * len(jobs), note)

        workers = worker_count(device, params.workers)
        records = train_seeds(jobs, target, workers, hear)
    scores = ", ".join(f"{records[seed]['best_dev']:.4f}" for seed in params.seeds)
    typer.echo(f"{task} {method}: {plan.metric} on dev {scores} (seeds {params.seeds})")


if __name__ == "__main__":
    run_stage(main)
