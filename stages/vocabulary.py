"""Choose one task's student vocabulary and give every word its initial vector.

    python stages/vocabulary.py --task movies

Reads data/tasks/<task>/train, with the unlabelled texts in it, and data/raw/models or
data/raw/vectors; writes data/vocabularies/<task>: a tokenizer and vectors.safetensors.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import load_params
from pipeline_lib.tasks.unlabelled import training_texts


def main(task: Annotated[str, typer.Option(help="A key of `tasks` in params.yaml.")]) -> None:
    """Choose one task's student vocabulary and give every word its initial vector."""
    from pipeline_lib.students import vocabulary

    params, layout = load_params().vocabulary, Layout()
    train = training_texts(layout.split(task, "train")).table()
    source = vocabulary.vector_source(params, layout)
    words = vocabulary.count_words([train])
    counted = vocabulary.count_normalised(words, params.lowercase)
    selected = vocabulary.select_words(counted, params.min_count)
    tokenizer, table = vocabulary.build_vocabulary(selected, params, source)
    vocabulary.save_vocabulary(clear_folder(layout.vocabulary(task)), tokenizer, table)
    typer.echo(f"{task}: {table.shape[0]:,} words, {table.shape[1]} values each")


if __name__ == "__main__":
    run_stage(main)
