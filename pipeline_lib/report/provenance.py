"""Where everything on the page comes from: code, settings, machines, times, packages, licences.

What differs between two runs over the same data is here, so that all else can be compared.
"""

import platform
import re
import subprocess
from collections.abc import Mapping
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
from pipeline_lib.sources.run_sources import UNKNOWN, source_rows

SECTIONS = ("tasks", "transfer", "models", "teachers", "students", "optimisers", "methods")
"""The sections of params.yaml that have digests of their own."""


def provenance(params: Params, layout: Layout, command: str, flow: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page was made from and with.

    :param command: the command that makes it; :param flow: with the stages' last runs.
    """
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "version": __version__,
        "commit": _commit(),
        "seeds": params.seeds,
        "processor": cpu_name(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "computed_on": computed_on(params, layout),
        "account": account_table(stage_runs(flow), started=True).plain(),
        "flow": flow,
        "digests": _digests(params),
        "sources": list(source_rows(params, layout)),
        "packages": _packages(),
    }


def _commit() -> dict[str, Any] | None:
    """Return the commit of the code, and whether code or settings were edited since."""
    try:
        commit = _git("rev-parse", "HEAD")
        code = ("pipeline_lib", "stages", "params.yaml", "dvc.yaml")
        edited = [line[3:] for line in _git("status", "--porcelain", "--", *code).splitlines()]
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"id": commit.strip(), "edited": edited[:20]}


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], capture_output=True, text=True, check=True).stdout


def _digests(params: Params) -> dict[str, str]:
    """Return the SHA-256 digests of settings and constraints, and of params.yaml by section."""
    files = {name: Path(name) for name in ("params.yaml", "dvc.yaml", "constraints.txt")}
    digests = {name: sha256_file(path) for name, path in files.items() if path.exists()}
    dumped = params.model_dump(mode="json")
    return digests | {f"params.yaml: {name}": sha256_json(dumped[name]) for name in SECTIONS}


def _packages() -> list[dict[str, str]]:
    """Return name, version and licence of the library's declared requirements."""
    try:
        declared = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return []
    names = [re.split(r"[^\w.-]", line)[0] for line in declared if "extra ==" not in line]
    packages = []
    for name in sorted(names, key=str.lower):
        try:
            metadata = distribution(name).metadata
        except PackageNotFoundError:
            continue
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
    return licence if licence and len(licence) < 80 else licence[:80] or UNKNOWN
