"""Fetch the pretrained models, and teachers that were fine-tuned elsewhere.

    python stages/fetch_models.py

Reads ``inputs``, ``models``, ``teachers`` and the tasks' labels of params.yaml; writes
data/raw/models/<name> and data/raw/checkpoints/<teacher>/<task>.
"""

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import load_params
from pipeline_lib.sources.models import fetch_models
from pipeline_lib.sources.preflight import require_formats


def main() -> None:
    """Fetch the pretrained models, and teachers that were fine-tuned elsewhere."""
    params = load_params()
    require_formats(params)
    fetch_models(params, Layout())


if __name__ == "__main__":
    run_stage(main)
