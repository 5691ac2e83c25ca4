"""Fetch a task's raw files, from a package, the user's own folder, or the hub.

    python -m pipeline_lib.stages.fetch_data --task movies

Reads ``inputs`` and ``tasks.<task>.source`` of params.yaml, and data/wikipedia/train for pairs of
neighbours; writes ``data/raw/tasks/<task>``.
"""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.layout import Layout
from pipeline_lib.corpora.tasks.fetching import fetch_data
from pipeline_lib.params import load_params


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Fetch a task's raw files, from a package, the user's own folder, or the hub."""
    params, layout = load_params(), Layout()
    settings, inputs = params.task(task), Path(params.inputs)
    fetch_data(task, settings.source, inputs, layout.raw_task(task))


if __name__ == "__main__":
    run_stage(main)
