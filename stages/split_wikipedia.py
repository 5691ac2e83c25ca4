"""Split articles into sentences: a training set, and a validation set of other articles.

    python -m pipeline_lib.stages.split_wikipedia

Reads what ``wikipedia.source`` of params.yaml names, in place; writes shard sets
data/wikipedia/{train,validation}, without shards where ``wikipedia`` is null.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.progress import show_progress
from pipeline_lib.base.terminal import say
from pipeline_lib.params import load_params

if TYPE_CHECKING:
    from pipeline_lib.shards.engine.passes import PassStats

FOLDER = Layout().data / "wikipedia"


def main() -> None:
    """Split articles into sentences: a training set, and a validation set of other articles."""
    from pipeline_lib.corpora.wikipedia.sentence_sets import split_wikipedia, write_empty
    from pipeline_lib.shards.engine import make_engine

    params = load_params()
    settings = params.wikipedia
    if settings is None:
        write_empty(FOLDER)
        say("wikipedia: null in params.yaml, so no sentences")
        return
    target = settings.sentences + settings.validation.sentences
    with show_progress("split wikipedia", "sentences") as advance:

        def on_progress(report: "PassStats", rows: int) -> None:
            note = f"({report.reused} chunks reused)"
            advance(rows, target, note, counted=rows if report.computed else 0)

        engine = make_engine(params, "cpu")
        inputs = Path(params.inputs)
        manifests, report = split_wikipedia(settings, inputs, FOLDER, engine, on_progress)
    for name, manifest in manifests.items():
        counts = manifest.counts
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts["dropped"].items())
        say(
            f"wikipedia {name}: {manifest.rows:,} sentences, read from {counts['articles']:,} "
            f"articles; left out: {reasons or 'none'}"
        )
    say(f"computed {report.computed} chunks, reused {report.reused}")


if __name__ == "__main__":
    run_stage(main)
