"""Compute the teacher's logits for one task's held-out splits.

    python stages/precompute_heldout.py --task movies

Reads data/tasks/<task>/{dev,test,...} and data/teachers/<task>; writes data/outputs/<task>/heldout.
"""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.params import load_params
from pipeline_lib.shards import ShardSet
from pipeline_lib.stage import run_stage


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Compute the teacher's logits for one task's held-out splits."""
    from pipeline_lib.evaluation.heldout import heldout_splits
    from pipeline_lib.teachers.outputs import OutputPass, compute_outputs

    params = load_params()
    output_pass = OutputPass.of(params, Path("data/teachers") / task)
    for split in heldout_splits(Path("data/tasks") / task):
        prepared = ShardSet.open(Path("data/tasks") / task / split)
        folder = Path("data/outputs") / task / "heldout" / split
        manifest, _ = compute_outputs(prepared, output_pass, folder, workers=1)
        typer.echo(f"{task} {split}: {manifest.rows:,} rows")


if __name__ == "__main__":
    run_stage(main)
