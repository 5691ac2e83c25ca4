"""Rank a collection's documents by the systems of one row of `retrieval`, and score the rankings.

    python -m pipeline_lib.stages.retrieve --row stsb

Reads the row's source (data/tasks, or files below `inputs`), data/students, data/encoders,
data/teachers and data/raw/models; writes data/results/retrieval-<row>/scores.json.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.seals import write_seal
from pipeline_lib.base.terminal import say
from pipeline_lib.params import load_params
from pipeline_lib.results.schema import Rankings, RetrievalScores, SeedScores
from pipeline_lib.retrieval.evaluation.rankings import retrieval_scores


def main(row: Annotated[str, typer.Option(help="A key of `retrieval` in params.yaml.")]) -> None:
    """Rank a collection's documents by the systems of one row, and score the rankings."""
    fields = retrieval_scores(load_params(), row, Layout())
    fields["systems"] = {
        system: Rankings(**{kind: by_seed and SeedScores.by_name(by_seed) for kind, by_seed in each.items()})
        for system, each in fields["systems"].items()
    }
    scores = RetrievalScores(**fields)
    path = Layout().retrieval(row)
    scores.write(path)
    write_seal(path.parent)
    say(f"{row}: {len(scores.systems)} systems, {scores.queries:,} queries, {scores.documents:,} documents")


if __name__ == "__main__":
    run_stage(main)
