"""Score the untuned similarity of a task's pairs by the systems of one row of `similarity`.

    python -m pipeline_lib.stages.similarity --row qqp

Reads data/tasks, data/encoders and data/raw/models; writes data/results/similarity-<row>/scores.json.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.seals import write_seal
from pipeline_lib.base.terminal import say
from pipeline_lib.params import load_params
from pipeline_lib.results.schema import SimilarityScores
from pipeline_lib.retrieval.evaluation.similarity import similarity_table


def main(row: Annotated[str, typer.Option(help="A key of `similarity` in params.yaml.")]) -> None:
    """Score the untuned similarity of a task's pairs by the systems of one row."""
    scores = SimilarityScores(**similarity_table(load_params(), row, Layout()))
    path = Layout().similarity(row)
    scores.write(path)
    write_seal(path.parent)
    say(f"{row}: {len(scores.systems)} systems scored on {scores.split}")


if __name__ == "__main__":
    run_stage(main)
