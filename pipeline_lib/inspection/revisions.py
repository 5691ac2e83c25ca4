"""Sets as they were at another revision of the repository, from DVC's cache."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json

_AT = re.compile(r"(?P<path>[^@]+)@(?P<revision>[^@].*)")


@contextmanager
def set_at(name: str) -> Iterator[Path]:
    """Yield the folder that ``path`` or ``path@revision`` refers to.

    A revision's shards are links into DVC's cache, in a temporary folder and under the same paths
    as in the repository, so that a set's counterpart is found beside it and nothing is copied.

    :param name: the revision is a git revision (a commit, tag or branch); the path is relative to
        the root of the repository, where the command must be run.
    """
    match = _AT.fullmatch(name)
    if Path(name).exists() or match is None:
        yield Path(name)
        return
    path = Path(match["path"])
    with tempfile.TemporaryDirectory() as folder:
        for relative, cached in _cached(match["revision"]):
            target = Path(folder) / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(cached)
        if not (Path(folder) / path / "manifest.json").exists():
            raise PotstillError(
                f"{name}: no shard set of this path and revision in DVC's cache. Check the path in "
                "that revision's dvc.lock, check the revision out and `dvc fetch`."
            )
        yield Path(folder) / path


def _cached(revision: str) -> Iterator[tuple[Path, Path]]:
    """Yield the path and the cached file of each shard and manifest of a revision."""
    from dvc.api import DVCFileSystem
    from dvc.exceptions import DvcException
    from scmrepo.exceptions import SCMError

    try:
        with DVCFileSystem(".", rev=revision).repo as repository:
            cache, root = repository.cache.local, repository.root_dir
            outs = list(repository.index.outs)
    except (DvcException, SCMError) as error:
        raise PotstillError(
            f"{revision}: no such revision here ({error}). Run the command at the root of the "
            "repository, with a commit, tag or branch of its own."
        ) from error
    for out in outs:
        if out.hash_info and out.hash_info.isdir:
            listing = Path(cache.oid_to_path(out.hash_info.value))
            for file in _listed(listing):
                cached = Path(cache.oid_to_path(file["md5"])).absolute()
                relative = Path(out.fs_path).relative_to(root) / file["relpath"]
                if cached.exists() and (relative.suffix == ".arrow" or relative.name == "manifest.json"):
                    yield relative, cached


def _listed(path: Path) -> list[dict[str, Any]]:
    """Return the files in a folder that DVC stored: md5 and relative path; none if not cached."""
    return read_json(path) if path.exists() else []
