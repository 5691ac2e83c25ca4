"""Write what every other stage depends on besides its data: its code, its settings, its files.

    python -m pipeline_lib.stages.fingerprint

Reads params.yaml, the installed library, and the user's files that params.yaml names; writes
data/fingerprints/<stage>.json: the modules that determine the stage's results, each with the
SHA-256 of its parsed code (comments, docstrings and formatting do not count); and
data/settings/<stage>/<item>.json: what the stage reads of params.yaml, with the digests of the
user's files that it reads.  It always runs, and takes a second: whether its files changed decides
what runs after it.
"""

import shutil
from pathlib import Path

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, load_params
from pipeline_lib.params.stage_settings import stage_settings
from pipeline_lib.shards.fingerprint import stage_code, stage_files
from pipeline_lib.sources.input_digests import digest_inputs, share_inputs
from pipeline_lib.sources.preflight import require_formats


def main() -> None:
    """Write the digests of the code of every stage, and what it reads of params.yaml."""
    params, layout = load_params(), Layout()
    require_formats(params)
    share_inputs(Path(params.inputs))
    fresh_folder(layout.fingerprints)
    for file in stage_files():
        write_json(layout.fingerprint(file.stem), stage_code(file))
    fresh_folder(layout.settings)
    write_settings(params, layout)
    write_names(params, layout)


def write_settings(params: Params, layout: Layout) -> None:
    """Write what each stage reads of params.yaml, and the digests of the user's files."""
    digests = digest_inputs(params)
    by_stage = stage_settings(params)
    by_stage["fetch_models"][None]["files"] = digests.get("models", {})
    by_stage["split_wikipedia"] = {None: {"files": digests.get("wikipedia", {})}}
    for name, settings in by_stage["fetch_data"].items():
        settings["files"] = digests.get(f"tasks.{name}", {})
    for name, settings in by_stage["retrieve"].items():
        settings["files"] = digests.get(f"retrieval.{name}", {})
    for stage, settings in by_stage.items():
        for item, values in settings.items():
            write_json(layout.stage_settings(stage, item), values)


def write_names(params: Params, layout: Layout) -> None:
    """Write the names of the rows of which there may be none: what depends on them can then.

    The outputs of other rows are deleted: DVC forgets a row that has left params.yaml, and the
    stages that depend on the whole folder would run again for what is left of it.
    """
    for folder, names in (
        (layout.refined, params.refined),
        (layout.encoders, params.encoders),
        (layout.all_joint, params.joint),
    ):
        write_json(layout.row_names(folder), sorted(names))
        for path in folder.iterdir():
            if path.is_dir() and path.name not in names:
                shutil.rmtree(path)


if __name__ == "__main__":
    run_stage(main)
