"""Fetch the file of pre-trained word vectors, where ``vocabulary.vectors`` names one.

    python stages/fetch_vectors.py

Reads ``inputs`` and ``vocabulary.vectors`` of params.yaml; writes ``data/raw/vectors``.
"""

from pathlib import Path

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import load_params
from pipeline_lib.sources.files import fetch_vectors


def main() -> None:
    """Fetch the file of pre-trained word vectors, if there is one."""
    params = load_params()
    fetch_vectors(params.vocabulary.vectors, Path(params.inputs), Layout().raw_vectors)


if __name__ == "__main__":
    run_stage(main)
