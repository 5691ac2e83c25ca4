"""Count the training words per part of speech, or use the table that params.yaml names.

    python stages/lexicon.py --task movies

Reads data/tasks/<task>/train, or data/raw/tasks/<task>/lexicon.arrow; writes
data/lexicons/<task>/lexicon.arrow.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import link_or_copy
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import load_params
from pipeline_lib.storage.columns import sentences
from pipeline_lib.storage.shards import ShardSet
from pipeline_lib.text.lexicon import count_words, read_lexicon, write_lexicon


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Count the training words per part of speech, or use the table that params.yaml names."""
    params, layout = load_params(), Layout()
    target = layout.lexicon(task)
    target.unlink(missing_ok=True)
    if params.task(task).lexicon is None:
        train = ShardSet.open(layout.split(task, "train")).table()
        write_lexicon(target, count_words(*(sentences(train, name) for name in ("words", "tags"))))
    else:
        link_or_copy(layout.raw_task(task) / "lexicon.arrow", target)
    lexicon = read_lexicon(target)
    typer.echo(f"{task}: {len(lexicon.words):,} words under {len(lexicon.tag_numbers)} tags")


if __name__ == "__main__":
    run_stage(main)
