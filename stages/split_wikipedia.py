"""Split articles into sentences: a training set, and a validation set of other articles.

    python stages/split_wikipedia.py

Reads what ``wikipedia.source`` of params.yaml names, where it lies; writes shard sets
data/wikipedia/{train,validation}, without shards where ``wikipedia`` is null.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.progress import show_progress
from pipeline_lib.params import load_params

if TYPE_CHECKING:
    from pipeline_lib.wikipedia.sentence_sets import Tally

FOLDER = Path("data/wikipedia")


def main() -> None:
    """Split articles into sentences: a training set, and a validation set of other articles."""
    from pipeline_lib.engine.local import worker_count
    from pipeline_lib.wikipedia.sentence_sets import split_wikipedia, write_empty

    params = load_params()
    settings = params.wikipedia
    if settings is None:
        write_empty(FOLDER)
        typer.echo("wikipedia: null in params.yaml, so no sentences")
        return
    wanted = settings.sentences + settings.validation.sentences
    with show_progress("split wikipedia", "sentences") as advance:

        def progress(tally: "Tally") -> None:
            note = f"({tally.reused} chunks reused)"
            advance(tally.rows, wanted, note, counted=tally.rows_computed)

        workers = worker_count("cpu", params.workers)
        manifests, tally = split_wikipedia(settings, Path(params.inputs), FOLDER, workers, progress)
    for name, manifest in manifests.items():
        counts = manifest.counts
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts["dropped"].items())
        typer.echo(
            f"wikipedia {name}: {manifest.rows:,} sentences, read from {counts['articles']:,} "
            f"articles; left out: {reasons or 'none'}"
        )
    typer.echo(f"computed {tally.computed} chunks, reused {tally.reused}")


if __name__ == "__main__":
    run_stage(main)
