"""Compute a model's vector of every sentence that an encoder is trained on.

    python stages/precompute_vectors.py

Reads data/wikipedia/{train,validation}, the transfer sets that `encoders` name, and
the model; writes data/vectors/wikipedia/<split> and data/vectors/tasks/<task>/<recipe>:
one shard per input shard, row for row, and alignment.json with the proof's figures.
"""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, load_params
from pipeline_lib.storage.shards import ShardSet

if TYPE_CHECKING:
    from pipeline_lib.engine.protocol import Engine
    from pipeline_lib.teachers.vectors import VectorPass


def main() -> None:
    """Compute a model's vector of every sentence that an encoder is trained on."""
    params, layout = load_params(), Layout()
    clear_folder(layout.vectors)
    if not params.encoders:
        typer.echo("no encoders in params.yaml: no vectors")
        return
    from pipeline_lib.engine import make_engine
    from pipeline_lib.teachers.vectors import VectorPass

    vector_pass = VectorPass.of(params, layout.model(params.sentence_vectors.model))
    engine = make_engine(params, vector_pass.device)
    for folder, inputs in wanted(params, layout).items():
        name = folder.relative_to(layout.vectors).as_posix()
        precompute(ShardSet.open(inputs), vector_pass, folder, engine, name)


def wanted(params: Params, layout: Layout) -> dict[Path, Path]:
    """Return the shard sets that encoders are trained on, by the place of their vectors."""
    sets = {
        layout.wikipedia_vectors(split): layout.wikipedia(split)
        for split in ("train", "validation")
    }
    for encoder in params.encoders.values():
        for task, recipe in encoder.tasks.items():
            if recipe is not None:
                sets[layout.task_vectors(task, recipe)] = layout.transfer(task, recipe)
    return sets


def precompute(
    inputs: ShardSet, vector_pass: "VectorPass", folder: Path, engine: "Engine", title: str
) -> None:
    """Compute the vectors of one shard set into ``folder`` and prove that they are its own."""
    from pipeline_lib.base.devices import single_thread
    from pipeline_lib.engine.passes import run_pass
    from pipeline_lib.teachers.alignment import prove_vectors

    manifest, report = run_pass(vector_pass, inputs, folder, engine, f"vectors {title}")
    with single_thread() if vector_pass.device == "cpu" else nullcontext():
        figures = prove_vectors(inputs, ShardSet.open(folder), vector_pass)
    write_json(folder / "alignment.json", figures)
    typer.echo(
        f"{title}: {manifest.rows:,} rows; {report};"
        f" of {figures['recomputed_rows']} run again {figures['nearest_to_their_own']:.0%} nearest "
        "to their own"
    )


if __name__ == "__main__":
    run_stage(main)
