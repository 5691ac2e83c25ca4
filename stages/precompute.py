"""Compute the teachers' logits for one task's sentences, through the content-addressed store.

    python stages/precompute.py --task movies

Reads data/transfer/<task>, data/tasks/<task>/{dev,test,...}, data/teachers/<task>; writes
data/outputs/<task>/<teacher>/<recipe> and data/outputs/<task>/heldout/<teacher>/<split>: one shard
per input shard, row for row, and alignment.json with the proof's figures.
"""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder, read_record, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, load_params
from pipeline_lib.storage.shards import ShardSet

if TYPE_CHECKING:
    from pipeline_lib.engine.protocol import Engine
    from pipeline_lib.teachers.outputs import LogitPass

AGREEMENT = "training_agreement"


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Compute the teachers' logits for one task's sentences."""
    params, layout = load_params(), Layout()
    clear_folder(layout.all_outputs(task))
    for teacher in params.teachers_of(task):
        answer(params, layout, task, teacher)


def answer(params: Params, layout: Layout, task: str, teacher: str) -> None:
    """Compute one teacher's logits for its transfer sets and the held-out splits."""
    from pipeline_lib.engine import make_engine
    from pipeline_lib.engine.passes import run_pass
    from pipeline_lib.evaluation.heldout import heldout_splits
    from pipeline_lib.teachers.outputs import LogitPass

    own = params.teachers[teacher]
    logit_pass = LogitPass.of(params, layout.teacher(task, teacher), own.max_length)
    engine = make_engine(params, logit_pass.device)
    agreement = read_record(logit_pass.folder / "training.json", AGREEMENT)[AGREEMENT]
    recipes = filter(own.answers, params.recipes_of(task))
    transfer = {recipe: ShardSet.open(layout.transfer(task, recipe)) for recipe in recipes}
    for recipe, inputs in transfer.items():
        outputs = layout.outputs(task, teacher, recipe)
        precompute(inputs, logit_pass, outputs, engine, f"{teacher} {task} {recipe}")
        prove(inputs, logit_pass, outputs, agreement)
    for split in heldout_splits(layout.task(task)):
        inputs = ShardSet.open(layout.split(task, split))
        outputs = layout.heldout_outputs(task, teacher, split)
        manifest, _ = run_pass(logit_pass, inputs, outputs, engine)
        typer.echo(f"{teacher} {task} {split}: {manifest.rows:,} rows")
        prove(inputs, logit_pass, outputs, None)


def precompute(
    inputs: ShardSet, logit_pass: "LogitPass", folder: Path, engine: "Engine", title: str
) -> None:
    """Compute the logits of one transfer set into ``folder``; say how much was found."""
    from pipeline_lib.engine.passes import run_pass

    manifest, report = run_pass(logit_pass, inputs, folder, engine, title)
    typer.echo(f"{title}: {manifest.rows:,} rows; {report}")


def prove(inputs: ShardSet, logit_pass: "LogitPass", folder: Path, own: float | None) -> None:
    """Prove that the logits in ``folder`` belong to their rows; write the figures beside them.

    :param own: the teacher's agreement on the training rows, where these are among them.
    """
    from pipeline_lib.base.devices import single_thread
    from pipeline_lib.teachers.alignment import prove_alignment

    # One thread here too: workers are forked from this process again, for the next set.
    with single_thread() if logit_pass.device == "cpu" else nullcontext():
        figures = prove_alignment(inputs, ShardSet.open(folder), logit_pass, own)
    write_json(folder / "alignment.json", figures)
    typer.echo(
        f"  {figures['recomputed_rows']} rows recomputed, greatest difference "
        f"{figures['max_abs_logit_difference']}"
    )
    if own is not None:
        typer.echo(f"  agreement with the labels {figures['agreement_with_labels']:.4f}")


if __name__ == "__main__":
    run_stage(main)
