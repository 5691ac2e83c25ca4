"""Train the sentence encoders of params.yaml to the base teacher's vectors, without any task.

    python stages/pretrain.py

Reads data/wikipedia, data/transfer and data/tasks of the tasks that the rows name, data/vectors,
data/raw/teacher/base and data/raw/vectors; writes data/encoders/<name>.  Killed, it goes on from
the last checkpoint.
"""

from pathlib import Path

import typer

from pipeline_lib.files import clear_folder
from pipeline_lib.params import load_params
from pipeline_lib.progress import show_progress
from pipeline_lib.stage import run_stage


def main() -> None:
    """Train the sentence encoders to the base teacher's vectors, without any task."""
    from pipeline_lib.pretraining import Pretraining, pretrain_or_find

    params = load_params()
    folder = clear_folder(Path("data/encoders"))
    for name in params.encoders:
        run = Pretraining(params, name, Path("data"))
        with show_progress(f"pretraining {name}", "steps") as advance:

            def report(step: int, total: int, loss: float, best: float) -> None:
                advance(step, total, f"loss {loss:.4f} held back {-best:.4f}")

            record = pretrain_or_find(run, folder / name, report)
        typer.echo(
            f"{name}: loss {record['loss']:.4f} on {record['held_back_sentences']:,} held-back "
            f"sentences, of one constant vector {record['constant_loss']:.4f}"
        )


if __name__ == "__main__":
    run_stage(main)
