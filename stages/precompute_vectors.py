"""Compute a model's vector of every sentence that an encoder is trained on.

    python stages/precompute_vectors.py

Reads data/wikipedia/{train,validation}, the transfer sets that `encoders` name, and
the model; writes data/vectors/wikipedia/<split> and data/vectors/tasks/<task>/<recipe>:
one shard per input shard, row for row, and alignment.json with the proof's figures.
"""

from pathlib import Path

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, load_params
from pipeline_lib.storage.shards import ShardSet


def main() -> None:
    """Compute a model's vector of every sentence that an encoder is trained on."""
    params, layout = load_params(), Layout()
    clear_folder(layout.vectors)
    if not params.sentence_encoders():
        typer.echo("no sentence encoders in params.yaml: no vectors")
        return
    from pipeline_lib.engine import make_engine
    from pipeline_lib.teachers.precompute import precompute_vectors
    from pipeline_lib.teachers.vectors import VectorPass

    vector_pass = VectorPass.of(params, layout.model(params.sentence_vectors.model))
    engine = make_engine(params, vector_pass.device)
    for folder, place in wanted(params, layout).items():
        name = folder.relative_to(layout.vectors).as_posix()
        inputs = ShardSet.open(place)
        found = precompute_vectors(inputs, vector_pass, folder, engine, f"vectors {name}")
        typer.echo(f"{name}: {found}")


def wanted(params: Params, layout: Layout) -> dict[Path, Path]:
    """Return the shard sets that encoders are trained on, by the place of their vectors."""
    sets = {
        layout.wikipedia_vectors(split): layout.wikipedia(split)
        for split in ("train", "validation")
    }
    for encoder in params.sentence_encoders().values():
        for task, recipe in encoder.tasks.items():
            if recipe is not None:
                sets[layout.task_vectors(task, recipe)] = layout.transfer(task, recipe)
    return sets


if __name__ == "__main__":
    run_stage(main)
