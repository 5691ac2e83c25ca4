"""Where everything on the page comes from: code, settings, machines, packages, licences."""

import os
import platform
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import read_json, sha256_file, sha256_json
from pipeline_lib.base.layout import Layout, state_folder
from pipeline_lib.base.processor import cpu_name
from pipeline_lib.params import Params

UNKNOWN = "unknown"
SECTIONS = ("tasks", "transfer", "models", "teachers", "students", "optimisers", "methods")
"""The sections of params.yaml that have digests of their own."""


def provenance(params: Params, layout: Layout, command: str) -> dict[str, Any]:
    """Return what the page was made from and with.

    :param command: the command that makes it.
    """
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "version": _version(),
        "commit": _commit(),
        "seeds": params.seeds,
        "processor": cpu_name(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "computed_on": computed_on(params, layout),
        "digests": _digests(params),
        "sources": list(_sources(params)),
        "packages": _packages(),
    }


def _version() -> str:
    try:
        return distribution("distillery").version
    except PackageNotFoundError:
        return UNKNOWN


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


def computed_on(params: Params, layout: Layout) -> list[str]:
    """Return the processors and torch versions that the records of trained models name."""
    folders = [layout.teacher(t, name) for t in params.tasks for name in params.teachers_of(t)]
    folders += [
        layout.student(task, method, seed)
        for task in params.tasks
        for method in params.methods_of(task)
        for seed in params.seeds
    ]
    folders += [layout.encoder(name) for name in params.encoders]
    found = set()
    for folder in folders:
        try:
            found.add(read_json(folder / "training.json")["computed_on"])
        except (DistilleryError, KeyError, TypeError):
            continue
    return sorted(found)


def _digests(params: Params) -> dict[str, str]:
    """Return the SHA-256 digests of settings and constraints, and of params.yaml by section."""
    files = {name: Path(name) for name in ("params.yaml", "dvc.yaml", "constraints.txt")}
    found = {name: sha256_file(path) for name, path in files.items() if path.exists()}
    dumped = params.model_dump(mode="json")
    return found | {f"params.yaml: {name}": sha256_json(dumped[name]) for name in SECTIONS}


def _sources(params: Params) -> Iterator[dict[str, str]]:
    """Yield the sources of the run's data and models, with the licence if it is known."""
    named = {f"task {name}": own.source for name, own in params.tasks.items()}
    named |= {f"model {name}": own for name, own in params.models.items()}
    if params.wikipedia is not None:
        named["Wikipedia"] = params.wikipedia.source
    for name, source in named.items():
        values = source.model_dump(mode="json")
        for part in values.get("parts") or [values]:
            kind = values.get("kind", "")
            yield {"name": name, "kind": kind} | _source(part)


def _source(values: dict[str, Any]) -> dict[str, str]:
    requirement = values.get("requirement")
    if requirement:
        pinned = {"from": requirement, "sha256": values.get("sha256") or UNKNOWN}
        return pinned | {"licence": _licence_of(requirement)}
    places = ("dataset", "model", "path", "folder", "files")
    found = next((values[key] for key in places if values.get(key)), None)
    revision = values.get("revision")
    named = ", ".join(found.values()) if isinstance(found, dict) else found
    where = named or "made from the run's other data"
    return {
        "from": f"{where} at {revision}" if revision else where,
        "sha256": values.get("sha256") or "–",
        "licence": UNKNOWN if found else "–",
    }


def _packages() -> list[dict[str, str]]:
    """Return name, version and licence of the library's declared requirements."""
    try:
        declared = requires("distillery") or []
    except PackageNotFoundError:
        return []
    names = [re.split(r"[^\w.-]", line)[0] for line in declared if "extra ==" not in line]
    found = []
    for name in sorted(names, key=str.lower):
        try:
            metadata = distribution(name).metadata
        except PackageNotFoundError:
            continue
        found.append({"name": name, "version": metadata["Version"], "licence": _licence(metadata)})
    return found


def _licence_of(requirement: str) -> str:
    """Return the licence that a downloaded archive states, without installing it."""
    name, _, version = requirement.partition("==")
    wanted = re.sub(r"[-_.]+", "_", f"{name}-{version}").lower()
    folder = state_folder() / "downloads"
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if re.sub(r"[-_.]+", "_", path.name).lower().startswith(wanted + "_"):
            try:
                return _licence(HeaderParser().parsestr(_metadata(path)))
            except (OSError, KeyError, ValueError, zipfile.BadZipFile, tarfile.TarError):
                return UNKNOWN
    return UNKNOWN


def _metadata(archive: Path) -> str:
    """Return the metadata of a wheel or of a source distribution."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            [name] = [n for n in wheel.namelist() if n.endswith(".dist-info/METADATA")]
            return wheel.read(name).decode("utf-8", "replace")
    with tarfile.open(archive) as sdist:
        # In file order: it is usually near the beginning.
        for member in sdist:
            if member.name.count(os.sep) == 1 and member.name.endswith("/PKG-INFO"):
                return sdist.extractfile(member).read().decode("utf-8", "replace")
    raise KeyError("PKG-INFO")


def _licence(metadata: Message) -> str:
    """Return the licence from its SPDX expression, its classifiers, or its first line."""
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier") or []
        if line.startswith("License ::") and not line.endswith("OSI Approved")
    ]
    stated = (metadata["License"] or "").strip().split("\n")[0]
    found = metadata["License-Expression"] or ", ".join(classifiers) or stated
    return found if found and len(found) < 80 else found[:80] or UNKNOWN
