"""Write digests of the models that students start from.

    python -m pipeline_lib.stages.digest_starts

Reads data/raw/models, data/raw/vectors, data/encoders and data/joint; writes data/digests/starts/<task>.json, on which
the stage train depends: so a new model or encoder runs it again only where it is used.
"""

from collections.abc import Iterable
from pathlib import Path

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, sha256_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import load_params
from pipeline_lib.params.stage_settings import Starts, starts_of


def main() -> None:
    """Write digests of the models that students start from."""
    params, layout = load_params(), Layout()
    fresh_folder(layout.started_from)
    for task in params.tasks:
        write_json(layout.read_by_training(task), _digests(folders_of(starts_of(params, task), layout)))


def folders_of(starts: Starts, layout: Layout) -> list[Path]:
    """Return the folders that a task's words and students start from."""
    folders = [*map(layout.model, starts.models), *map(layout.encoder, starts.encoders)]
    return folders + [*map(layout.joint, starts.joint)] + ([layout.raw_vectors] if starts.file else [])


def _digests(folders: Iterable[Path]) -> dict[str, str]:
    return {folder.as_posix(): sha256_folder(folder) for folder in folders}


if __name__ == "__main__":
    run_stage(main)
