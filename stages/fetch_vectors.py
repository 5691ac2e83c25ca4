"""Fetch the file of pre-trained word vectors, and files of sentence vectors.

    python stages/fetch_vectors.py

Reads ``inputs``, ``vocabulary.vectors`` and ``sentence_vectors`` of params.yaml; writes
data/raw/vectors and, by content key, data/raw/sentence_vectors.
"""

from pathlib import Path

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import SentenceVectorFiles, load_params
from pipeline_lib.sources.files import existing_file, fetch_vectors, write_source


def main() -> None:
    """Fetch the file of pre-trained word vectors, and files of sentence vectors, if any."""
    params, layout = load_params(), Layout()
    fetch_vectors(params.vocabulary.vectors, Path(params.inputs), layout.raw_vectors)
    folder, source = clear_folder(layout.given_vectors), None
    if isinstance(params.sentence_vectors, SentenceVectorFiles):
        take_vectors(params.sentence_vectors, Path(params.inputs), folder)
        source = params.sentence_vectors.model_dump(mode="json")
    write_source(folder, source)


def take_vectors(settings: SentenceVectorFiles, inputs: Path, folder: Path) -> None:
    """Import the sentence vectors in files into ``folder``; print how many there are."""
    from pipeline_lib.teachers.given_vectors import gather_vectors

    keys = (f"params.yaml: sentence_vectors.files.{n}" for n in range(len(settings.files)))
    files = [existing_file(inputs / p, k) for p, k in zip(settings.files, keys, strict=True)]
    given = gather_vectors(files, settings, folder)
    counts = ", ".join(f"{count:,} {what}" for what, count in given.counts.items() if count)
    typer.echo(f"sentence vectors of {given.width:,} values: {counts}")


if __name__ == "__main__":
    run_stage(main)
