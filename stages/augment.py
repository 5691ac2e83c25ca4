"""Make one transfer set of one task.

    python stages/augment.py --task movies --recipe full

Reads data/tasks/<task>/train and data/lexicons/<task>; writes data/transfer/<task>/<recipe>.
"""

import time
from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.params import load_params
from pipeline_lib.shards import ShardSet
from pipeline_lib.stage import leave_empty, run_stage
from pipeline_lib.text.lexicon import read_lexicon
from pipeline_lib.transfer import write_transfer_set


def main(
    task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")],
    recipe: Annotated[str, typer.Option(help="A key of `transfer` in params.yaml.")],
) -> None:
    """Make one transfer set of one task."""
    params = load_params()
    target = Path("data/transfer") / task / recipe
    if not params.recipe(recipe).covers(task):
        leave_empty(target, f"{task} {recipe}: this transfer set is not made for this task")
        return
    start = time.monotonic()
    manifest = write_transfer_set(
        ShardSet.open(Path("data/tasks") / task / "train"),
        read_lexicon(Path("data/lexicons") / task / "lexicon.arrow"),
        params.recipe(recipe),
        params.task(task),
        target,
    )
    seconds = time.monotonic() - start
    typer.echo(
        f"{task} {recipe}: {manifest.rows:,} rows in {len(manifest.shards)} shards, "
        f"{manifest.rows / seconds:,.0f} rows/s; {manifest.counts['duplicates']:,} duplicates "
        "dropped"
    )


if __name__ == "__main__":
    run_stage(main)
