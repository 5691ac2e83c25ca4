"""Fetch the pretrained models, teachers that were fine-tuned elsewhere, and files of word vectors.

    python -m pipeline_lib.stages.fetch_models

Reads ``inputs``, ``models``, ``teachers``, the tasks' labels, and ``vocabulary.vectors`` of params.yaml;
writes data/raw/models/<name>, data/raw/checkpoints/<teacher>/<task> and data/raw/vectors (word vectors).
"""

from pathlib import Path

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.fitting import loading_faults
from pipeline_lib.params import load_params
from pipeline_lib.sources.files import fetch_vectors
from pipeline_lib.sources.models import fetch_models


def main() -> None:
    """Fetch the pretrained models, finished teachers, and files of word vectors."""
    params, layout = load_params(), Layout()
    fetch_models(params, layout)
    faults = loading_faults(params, layout)
    if faults:
        raise PotstillError("\n".join(faults))
    fetch_vectors(params.vocabulary.vectors, Path(params.inputs), layout.raw_vectors)


if __name__ == "__main__":
    run_stage(main)
