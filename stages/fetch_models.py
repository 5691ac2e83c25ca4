"""Fetch the pretrained models, teachers that were fine-tuned elsewhere, and files of vectors.

    python -m pipeline_lib.stages.fetch_models

Reads ``inputs``, ``models``, ``teachers``, the tasks' labels, ``vocabulary.vectors`` and ``sentence_vectors`` of
params.yaml; writes data/raw/models/<name>, data/raw/checkpoints/<teacher>/<task>, data/raw/vectors (word vectors)
and, by content key, data/raw/sentence_vectors.
"""

from pathlib import Path

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import fresh_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.models.fitting import loading_faults
from pipeline_lib.params import Params, SentenceVectorFiles, load_params
from pipeline_lib.sources.files import existing_file, fetch_vectors, write_source
from pipeline_lib.sources.models import fetch_models


def main() -> None:
    """Fetch the pretrained models, finished teachers, and files of vectors."""
    params, layout = load_params(), Layout()
    fetch_models(params, layout)
    faults = loading_faults(params, layout)
    if faults:
        raise PotstillError("\n".join(faults))
    fetch_vectors(params.vocabulary.vectors, Path(params.inputs), layout.raw_vectors)
    fetch_sentence_vectors(params, layout)


def fetch_sentence_vectors(params: Params, layout: Layout) -> None:
    """Import the sentence vectors in files, if params.yaml names any; print how many there are."""
    folder, settings = fresh_folder(layout.given_vectors), params.sentence_vectors
    if not isinstance(settings, SentenceVectorFiles):
        write_source(folder, None)
        return
    from pipeline_lib.outputs.files.gathering import gather
    from pipeline_lib.outputs.files.vector_files import Vectors

    files = [
        existing_file(Path(params.inputs) / path, f"params.yaml: sentence_vectors.files.{number}")
        for number, path in enumerate(settings.files)
    ]
    vectors = gather(files, Vectors(settings), folder)
    write_source(folder, settings.model_dump(mode="json"))
    counts = ", ".join(f"{count:,} {what}" for what, count in vectors.counts.items() if count)
    say(f"sentence vectors of {vectors.width:,} values: {counts}")


if __name__ == "__main__":
    run_stage(main)
