"""Compute the teacher's logits for one transfer set, through the content-addressed store.

    python stages/precompute.py --task movies --recipe full

Reads data/transfer/<task>/<recipe> and data/teachers/<task>; writes data/outputs/<task>/<recipe>:
one shard per input shard, row for row, and alignment.json with the proof's figures.
"""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.files import read_json, write_json
from pipeline_lib.params import Params, load_params
from pipeline_lib.progress import show_progress
from pipeline_lib.shards import ShardSet
from pipeline_lib.stage import leave_empty, run_stage


def main(
    task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")],
    recipe: Annotated[str, typer.Option(help="A key of `transfer` in params.yaml.")],
) -> None:
    """Compute the teacher's logits for one transfer set, through the content-addressed store."""
    params = load_params()
    folder = Path("data/outputs") / task / recipe
    if not params.recipe(recipe).covers(task):
        leave_empty(folder, f"{task} {recipe}: this transfer set is not made for this task")
        return
    precompute(params, task, recipe, folder)


def precompute(params: Params, task: str, recipe: str, folder: Path) -> None:
    """Compute the logits of one transfer set into ``folder``, and prove that they belong to it."""
    from pipeline_lib.engine import worker_count
    from pipeline_lib.teachers.alignment import prove_alignment
    from pipeline_lib.teachers.outputs import OutputPass, Tally, compute_outputs

    inputs = ShardSet.open(Path("data/transfer") / task / recipe)
    output_pass = OutputPass.of(params, Path("data/teachers") / task)
    workers = worker_count(output_pass.device, params.workers)
    with show_progress(f"teacher {task} {recipe}", "rows") as advance:

        def progress(tally: Tally, rows: int) -> None:
            note = f"({tally.reused} shards reused)"
            done = tally.rows_computed + tally.rows_reused
            advance(done, rows, note, counted=tally.rows_computed)

        manifest, tally = compute_outputs(inputs, output_pass, folder, workers, progress)
    own = read_json(Path("data/teachers") / task / "training.json")["training_agreement"]
    outputs = ShardSet.open(folder)
    figures = prove_alignment(
        inputs, outputs, output_pass.teacher(), params.teacher.max_length, own
    )
    write_json(folder / "alignment.json", figures)
    typer.echo(
        f"{task} {recipe}: {manifest.rows:,} rows; computed {tally.computed} shards, "
        f"reused {tally.reused}; agreement with the labels {figures['agreement_with_labels']:.4f}, "
        f"greatest difference of {figures['recomputed_rows']} recomputed rows "
        f"{figures['greatest_logit_difference']}"
    )


if __name__ == "__main__":
    run_stage(main)
