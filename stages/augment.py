"""Make all transfer sets of one task.

    python -m pipeline_lib.stages.augment --task movies

Reads data/tasks/<task>/train, with the unlabelled texts in it. Writes data/lexicons/<task>/lexicon.arrow, how often
each word occurs as each part of speech; data/transfer/<task>/<recipe>: a shard per block and iteration; and
data/digests/encoders/<task>.json, on which the stages of encoders depend: the sets that they read.
"""

import time
from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.seals import write_seal
from pipeline_lib.base.terminal import say
from pipeline_lib.corpora.augmentation.lexicon import count_words, read_lexicon
from pipeline_lib.corpora.augmentation.transfer_sets import check_cap, examples_of, pass_of
from pipeline_lib.params import Params, load_params
from pipeline_lib.shards.columns import sentences
from pipeline_lib.shards.engine import make_engine
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.shard_sets import ShardSet, write_shard
from pipeline_lib.shards.training_texts import training_texts


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Make all transfer sets of one task."""
    params, layout = load_params(), Layout()
    settings = params.task(task)
    recipes = params.recipes_of(task)
    sets = {recipe: examples_of(params, task, recipe, layout) for recipe in recipes}
    check_cap(task, settings, max((rows.manifest.rows for rows in sets.values()), default=0))
    make_lexicon(task, layout)
    engine = make_engine(params, "cpu")
    fresh_folder(layout.transfer_sets(task))
    for recipe in recipes:
        start = time.monotonic()
        examples = sets[recipe]
        augmentation = pass_of(params, task, recipe, examples, layout)
        manifest, report = run_pass(augmentation, examples, layout.transfer(task, recipe), engine)
        seconds = time.monotonic() - start
        say(
            f"{task} {recipe}: {manifest.rows:,} rows in {len(manifest.shards)} shards, "
            f"{manifest.rows / seconds:,.0f} rows/s; {manifest.counts['duplicates']:,} duplicates "
            f"dropped; computed {report.computed} blocks, reused {report.reused}"
        )
    write_json(layout.read_by_encoders(task), read_by_encoders(params, task, layout))


def read_by_encoders(params: Params, task: str, layout: Layout) -> dict[str, str]:
    """Return the digests of the sets that encoders read of a task: its words, its transfer sets."""
    rows = [row for row in params.sentence_encoders().values() if task in row.tasks]
    recipes = sorted({row.tasks[task] for row in rows} - {None})
    folders = [layout.transfer(task, recipe) for recipe in recipes]
    folders += [layout.split(task, "train")] if rows else []
    return {folder.name: training_texts(folder).manifest.digest for folder in folders}


def make_lexicon(task: str, layout: Layout) -> None:
    """Count the training words per part of speech."""
    target = layout.lexicon(task)
    fresh_folder(target.parent)
    train = ShardSet.open(layout.split(task, "train")).to_table()
    write_shard(target, count_words(*(sentences(train, name) for name in ("words", "tags"))))
    write_seal(target.parent)
    lexicon = read_lexicon(target)
    say(f"{task}: {len(lexicon.words):,} words under {len(lexicon.tag_numbers)} tags")


if __name__ == "__main__":
    run_stage(main)
