"""Where everything on the page comes from: code, settings, machines, times, packages, licences.

What differs between two runs over the same data is here, so that all else can be compared.
"""

import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.message import Message
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from typing import Any

from pipeline_lib import __version__
from pipeline_lib.base.errors import DISTRIBUTION
from pipeline_lib.base.files import sha256_file, sha256_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import cpu_name
from pipeline_lib.params import Params
from pipeline_lib.results.account import account_table, stage_runs
from pipeline_lib.results.trainings import computed_on

SECTIONS = ("tasks", "transfer", "models", "teachers", "students", "optimisers", "methods")


def provenance(
    params: Params, layout: Layout, flow: Mapping[str, Any], sources: Iterable[Mapping[str, str]]
) -> dict[str, Any]:
    """Return what the page was made from and with.

    :param flow: with the stages' last runs; :param sources: of data and models, a row each.
    """
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": "dvc repro",
        "version": __version__,
        "commit": _commit(),
        "seeds": params.seeds,
        "processor": cpu_name(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "computed_on": computed_on(params, layout),
        "account": account_table(stage_runs(flow), started=True).plain(),
        "flow": flow,
        "digests": _digests(params),
        "sources": [*sources],
        "packages": _packages(),
    }


def _commit() -> dict[str, Any] | None:
    """Return the commit of the code, and whether code or settings were edited since."""
    try:
        commit = _git("rev-parse", "HEAD")
        status = _git("status", "--porcelain", "--", "pipeline_lib", "stages", "params.yaml", "dvc.yaml")
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"id": commit.strip(), "edited": [line[3:] for line in status.splitlines()][:20]}


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], capture_output=True, text=True, check=True).stdout


def _digests(params: Params) -> dict[str, str]:
    files = {name: Path(name) for name in ("params.yaml", "dvc.yaml", "constraints.txt")}
    digests = {name: sha256_file(path) for name, path in files.items() if path.exists()}
    dumped = params.model_dump(mode="json")
    return digests | {f"params.yaml: {name}": sha256_json(dumped[name]) for name in SECTIONS}


def _packages() -> list[dict[str, str]]:
    """Return name, version and licence of the library's declared requirements."""
    packages = []
    with suppress(PackageNotFoundError):
        names = {re.split(r"[^\w.-]", line)[0] for line in requires(DISTRIBUTION) or [] if "extra ==" not in line}
        for name in sorted(names, key=str.lower):
            with suppress(PackageNotFoundError):
                metadata = distribution(name).metadata
                packages.append({"name": name, "version": metadata["Version"], "licence": _licence(metadata)})
    return packages


def _licence(metadata: Message) -> str:
    """Return the licence from its SPDX expression, its classifiers, or its first line."""
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier") or []
        if line.startswith("License ::") and not line.endswith("OSI Approved")
    ]
    stated = (metadata["License"] or "").strip().split("\n")[0]
    licence = metadata["License-Expression"] or ", ".join(classifiers) or stated
    return licence[:80] or "unknown"
