"""A regression on untuned sentence vectors: what an encoder knows of a task before it is tuned.

Wu et al. 2020 tune the whole encoder on a task's labels.  Here a logistic regression reads its
vectors as they are, and those of the model that it was trained to match: how much of the model's
knowledge of the task has reached the encoder.

    python benchmarks/untuned_vectors.py --task sst2 --encoder sra

Run it in a workspace where `dvc repro` has finished the encoder and the task.  The regression is tuned by
cross-validation on the training rows; its accuracy is on test.  It writes results/NAME.json.
"""

from typing import Annotated

import typer
from few_row_peers import Row, regression
from harness import RESULTS, Name, Out, facts, table, write_results

from pipeline_lib.base.layout import Layout
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.params import load_params
from pipeline_lib.retrieval.embedders import Encode, model_encoder
from pipeline_lib.shards.columns import texts as texts_of
from pipeline_lib.shards.shard_sets import ShardSet


def main(
    task: Annotated[str, typer.Option(help="Classification to learn.")] = "sst2",
    encoder: Annotated[list[str] | None, typer.Option(help="Encoders to compare with it.")] = None,
    name: Name = "untuned_vectors",
    out: Out = RESULTS,
) -> None:
    """Measure and write the results."""
    params, layout = load_params(), Layout()
    fact = facts(("torch", "transformers", "scikit-learn"), 1, 1)
    settings = params.sentence_vectors
    systems: dict[str, Encode] = {
        f"{settings.model}, {pooling}": model_encoder(params, layout, settings.model, pooling, settings.max_length)
        for pooling in ("mean", "cls")
    }
    for encoder_name in encoder or []:
        systems[encoder_name] = load_encoder(layout.encoder(encoder_name)).encode
    train, test = (_rows(layout, task, split) for split in ("train", "test"))
    accuracies = {system: round(regression(encode, train, test), 6) for system, encode in systems.items()}
    results = {"facts": fact, "task": task, "rows": {"train": len(train), "test": len(test)}, "accuracies": accuracies}
    lines = [
        f"# A regression on untuned vectors of {task}",
        "",
        f"Accuracy in percent on {len(test):,} rows of test, after {len(train):,} of train.",
        "",
        *table(["vectors of", "accuracy"], [[k, f"{100 * v:.1f}"] for k, v in accuracies.items()]),
    ]
    write_results(name, results, lines, out)


def _rows(layout: Layout, task: str, split: str) -> list[Row]:
    """Return the texts and the label of each row."""
    rows = ShardSet.open(layout.split(task, split)).to_table()
    labels = map(str, rows["label"].to_pylist())
    return [
        (*(text if isinstance(text, tuple) else (text,)), label)
        for text, label in zip(texts_of(rows), labels, strict=True)
    ]


if __name__ == "__main__":
    typer.run(main)
