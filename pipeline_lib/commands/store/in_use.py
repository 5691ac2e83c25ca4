"""Digests that a workspace refers to: of its data, and of those that git's tags and branches name.

Data of other revisions are known to DVC alone, by the digests in their dvc.lock: it keeps manifests
and seals in its cache, and these name the rest.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json
from pipeline_lib.base.seals import RECORDS
from pipeline_lib.shards.shard_sets import MANIFEST

_RECORDS = (MANIFEST, *RECORDS)
_HEX = frozenset("0123456789abcdef")


def digests_in_data(data: Path) -> set[str]:
    """Return the SHA-256 that manifests and seals below a folder name."""
    return {digest for name in _RECORDS for path in data.rglob(name) for digest in _digests_in_file(path)}


def digests_in_revisions(root: Path) -> tuple[set[str], list[str]]:
    """Return the SHA-256 that the data of git's tags and branches name, and these names.

    Of a revision whose data DVC has not cached, nothing is known.

    :param root: the workspace.
    """
    names = _git(root, "for-each-ref", "--format=%(refname:short)", "refs/tags", "refs/heads")
    digests: set[str] = set()
    revisions: list[str] = []
    for name in names.split():
        lock = _git(root, "show", f"{name}:./dvc.lock")
        named = {digest for record in _cached(root, lock) for digest in _digests_in_file(record)}
        if named:
            digests |= named
            revisions.append(name)
    return digests, revisions


def _digests_in_file(path: Path) -> Iterator[str]:
    try:
        yield from _digests_in(read_json(path))
    except PotstillError:
        # A truncated record refers to nothing.
        return


def _digests_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _digests_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _digests_in(item)
    elif isinstance(value, str) and len(value) == 64 and _HEX.issuperset(value):
        yield value


def _cached(root: Path, lock: str) -> Iterator[Path]:
    stages = (YAML(typ="safe").load(lock) or {}).get("stages", {}) if lock else {}
    cache = root / ".dvc/cache/files/md5"
    for stage in stages.values():
        for out in stage.get("outs", []):
            digest = str(out.get("md5", ""))
            tree = cache / digest[:2] / digest[2:]
            if not digest.endswith(".dir") or not tree.is_file():
                continue
            for entry in json.loads(tree.read_text(encoding="utf-8")):
                path = cache / entry["md5"][:2] / entry["md5"][2:]
                if Path(entry["relpath"]).name in _RECORDS and path.is_file():
                    yield path


def _git(root: Path, *command: str) -> str:
    """Return what git prints; nothing, if it fails or there is none."""
    try:
        done = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""
