"""Train the sentence encoders of params.yaml to the base teacher's vectors, without any task.

    python stages/pretrain.py

Reads data/wikipedia, data/transfer and data/tasks of the tasks that the rows name, data/vectors,
data/raw/teacher/base and data/raw/vectors; writes data/encoders/<name>.  Killed, it goes on from
the last checkpoint.
"""

from pathlib import Path

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.progress import show_progress
from pipeline_lib.params import load_params


def main() -> None:
    """Train the sentence encoders to the base teacher's vectors, without any task."""
    from pipeline_lib.distillation.encoders import Pretraining, pretrain_encoders
    from pipeline_lib.engine.local import worker_count

    params = load_params()
    runs = [Pretraining(params, name, Path("data")) for name in params.encoders]
    steps, totals = [0] * len(runs), [0] * len(runs)
    with show_progress("pretraining", "steps") as advance:

        def hear(run: int, message: tuple[int, int, float, float]) -> None:
            steps[run], totals[run], loss, held_back = message
            note = f"{runs[run].name}: loss {loss:.4f} held back {held_back:.4f}"
            advance(sum(steps), sum(totals), note)

        workers = worker_count(runs[0].device.type, params.workers) if runs else 1
        records = pretrain_encoders(runs, Path("data/encoders"), workers, hear)
    for name, record in records.items():
        typer.echo(
            f"{name}: loss {record['loss']:.4f} on {record['held_back_sentences']:,} held-back "
            f"sentences, of one constant vector {record['constant_loss']:.4f}"
        )


if __name__ == "__main__":
    run_stage(main)
