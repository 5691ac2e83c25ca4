"""A study's own DVC workspace: params.yaml is left alone, and little is computed twice.

The workspace is below the state folder and shares DVC's cache and the store with the repository,
so whatever they have in common (raw data, prepared shards, a teacher, logits) is reused.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from pipeline_lib.base.dvc_leftovers import clear_leftovers
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import check_state_folder, state_folder
from pipeline_lib.base.terminal import say
from pipeline_lib.base.workspace import DVC, make_workspace


def run_study(name: str, params: dict[str, Any]) -> Path:
    """Run the pipeline with ``params`` in the study's workspace, and return that folder.

    If killed, it resumes where it stopped.

    :param name: the workspace's name; the same name reuses the same workspace.
    """
    check_state_folder()
    folder = (state_folder() / "studies" / name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # Another version's pipeline is replaced: the folder is this library's own.
    make_workspace(folder, scm=False, force=True)
    cache = _shared_cache()
    inputs = str(Path(params["inputs"]).resolve())
    with (folder / "params.yaml").open("w", encoding="utf-8") as file:
        YAML().dump(params | {"inputs": inputs}, file)
    environment = os.environ | {"POTSTILL_HOME": str(state_folder().resolve())}
    for line in clear_leftovers(folder):
        say(line)
    _dvc(folder, environment, "config", "cache.dir", cache)
    _dvc(folder, environment, "repro", "report")
    return folder


def _shared_cache() -> str:
    done = subprocess.run([*DVC, "cache", "dir"], capture_output=True, text=True)
    if done.returncode:
        raise PotstillError("not a DVC repository. Run studies in a workspace.")
    return done.stdout.strip()


def _dvc(folder: Path, environment: dict[str, str], *words: str) -> None:
    done = subprocess.run([*DVC, *words], cwd=folder, env=environment)
    if done.returncode:
        raise PotstillError(
            f"{folder}: `dvc {' '.join(words)}` failed (above). Run the study again once that is "
            "fixed: it resumes where it stopped."
        )
