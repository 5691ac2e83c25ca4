"""Score every student of one task, and the teacher, on the held-out splits.

    python -m pipeline_lib.stages.evaluate --task movies

Reads data/tasks, data/outputs/<task>/heldout, data/teachers, data/students; writes
data/results/<task>/scores.json, predictions.arrow and importance.json.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.seals import write_seal
from pipeline_lib.base.terminal import say
from pipeline_lib.evaluation.evaluate import evaluate_task
from pipeline_lib.params import load_params


def main(task: Annotated[str, typer.Option(help="A task of params.yaml.")]) -> None:
    """Score every student of one task, and the teacher, on the held-out splits."""
    from pipeline_lib.evaluation.word_importance_examples import write_importance

    params, layout = load_params(), Layout()
    scores = evaluate_task(params, task, layout)
    explained = write_importance(params, task, layout, scores)
    write_seal(layout.results(task))
    splits = ", ".join(scores.scored_splits) or "no split: nothing is labelled"
    say(f"{task}: {len(scores.methods)} methods scored on {splits}; {explained} rows explained")


if __name__ == "__main__":
    run_stage(main)
