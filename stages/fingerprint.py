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
from typing import Any

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, load_params
from pipeline_lib.params.stage_settings import Settings, stage_settings
from pipeline_lib.shards.fingerprint import stage_code, stage_files
from pipeline_lib.sources.input_digests import digest_inputs, share_inputs
from pipeline_lib.sources.preflight import require_formats


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


def stage_inputs(params: Params, layout: Layout) -> dict[Path, Any]:
    """Return what this stage writes, as JSON by file: what the others depend on besides data."""
    files: dict[Path, Any] = {layout.fingerprint(file.stem): stage_code(file) for file in stage_files()}
    for stage, settings in settings_by_stage(params).items():
        files |= {layout.stage_settings(stage, item): values for item, values in settings.items()}
    return files | {layout.row_names(folder): names for folder, names in row_names(params, layout)}


def settings_by_stage(params: Params) -> dict[str, Settings]:
    """Return what each stage reads of params.yaml, with the digests of the user's files."""
    digests = digest_inputs(params)
    by_stage = stage_settings(params)
    by_stage["fetch_models"][None]["files"] = digests.get("models", {})
    by_stage["split_wikipedia"] = {None: {"files": digests.get("wikipedia", {})}}
    for name, settings in by_stage["fetch_data"].items():
        settings["files"] = digests.get(f"tasks.{name}", {})
    return by_stage


def row_names(params: Params, layout: Layout) -> list[tuple[Path, list[str]]]:
    """Return the names of the rows of which there may be none, with the folders of their outputs.

    What depends on such a folder can then.
    """
    folders = (layout.refined, params.refined), (layout.encoders, params.encoders)
    return [(folder, sorted(rows)) for folder, rows in (*folders, (layout.all_joint, params.joint))]


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
