"""Split a task's text into words with tags, and its training set into blocks.

    python -m pipeline_lib.stages.prepare --task movies

Reads data/raw/tasks/<task>; writes shard sets data/tasks/<task>/{train,dev,test}.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.seals import check_sealed
from pipeline_lib.base.terminal import say
from pipeline_lib.corpora.tasks.labelled import read_examples
from pipeline_lib.corpora.tasks.preparation import prepare_task
from pipeline_lib.params import load_params
from pipeline_lib.results.splits import empty_texts_line, prepared_line
from pipeline_lib.shards.engine import make_engine


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Split a task's text into words with tags, and its training set into blocks."""
    params, layout = load_params(), Layout()
    settings = params.task(task)
    check_sealed(layout.raw_task(task))
    splits, dropped = read_examples(layout.raw_task(task), settings)
    engine = make_engine(params, "cpu")
    folder = fresh_folder(layout.task(task))
    manifests = prepare_task(splits, dropped, settings, params.tagger, folder, engine)
    if warning := empty_texts_line(task, dropped):
        say(warning)
    say(prepared_line(task, manifests))


if __name__ == "__main__":
    run_stage(main)
