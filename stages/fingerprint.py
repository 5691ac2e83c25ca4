"""Write what every other stage depends on besides its data: its code, its settings, its files.

    python -m pipeline_lib.stages.fingerprint

Reads params.yaml, the installed library, and the user's files that params.yaml names; writes
data/fingerprints/<stage>.json: the modules that determine the stage's results, each with the SHA-256 of its parsed
code (comments, docstrings and formatting do not count); and data/settings/<stage>/<item>.json: what the stage reads
of params.yaml, with the digests of the user's files that it reads.  It always runs, and takes a second: whether its
files changed decides what runs after it.
"""

import shutil
from pathlib import Path

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.corpora.stage_inputs import row_names, stage_inputs
from pipeline_lib.params import Params, load_params
from pipeline_lib.params.preflight import require_formats
from pipeline_lib.sources.input_digests import share_inputs


def main() -> None:
    """Write the digests of the code of every stage, and what it reads of params.yaml."""
    params, layout = load_params(), Layout()
    require_formats(params)
    share_inputs(Path(params.inputs))
    fresh_folder(layout.fingerprints)
    fresh_folder(layout.settings)
    for path, values in stage_inputs(params, layout).items():
        write_json(path, values)
    remove_other_rows(params, layout)


def remove_other_rows(params: Params, layout: Layout) -> None:
    """Delete the outputs of rows that have left params.yaml: DVC forgets them.

    The stages that depend on the whole folder would run again for what is left of it.
    """
    for folder, names in row_names(params, layout):
        for path in folder.iterdir():
            if path.is_dir() and path.name not in names:
                shutil.rmtree(path)


if __name__ == "__main__":
    run_stage(main)
