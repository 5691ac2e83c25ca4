"""What the stages depend on besides data: their code, their settings, the user's files."""

from pathlib import Path
from typing import Any

from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params
from pipeline_lib.params.stage_settings import Settings, stage_settings
from pipeline_lib.shards.fingerprint import stage_code, stage_files
from pipeline_lib.sources.input_digests import digest_inputs


def stage_inputs(params: Params, layout: Layout) -> dict[Path, Any]:
    """Return what the first stage writes, as JSON by file: what the others depend on besides data."""
    files: dict[Path, Any] = {
        layout.fingerprint(file.stem): stage_code(file, params.extensions) for file in stage_files()
    }
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
    """Return the names of the rows of which there may be none, and the outputs' folder: what depends on it can then."""
    folders = (layout.refined, params.refined), (layout.encoders, params.encoders)
    return [(folder, sorted(rows)) for folder, rows in (*folders, (layout.all_joint, params.joint))]
