"""Digests of the user's own files, so that an edited one reruns the stages that read it, no others.

DVC could depend on the folder of all inputs, but not on "the files that this task names", nor on one outside that
folder or behind a link.  So the first stage writes the digests of the named files beside each stage's settings.
"""

import os
from collections import defaultdict
from glob import glob
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_record, sealed_record, sha256_file, sha256_json, unsealed_record, write_json
from pipeline_lib.base.layout import state_folder
from pipeline_lib.params import Params
from pipeline_lib.params.sources import InputFile

Digests = dict[str, dict[str, str | None]]
"""By reader, then by key and path: the SHA-256, or None for a missing file."""


def share_inputs(inputs: Path) -> None:
    """Link what the main workspace's ``inputs`` holds into this one's, where it is missing.

    `dvc exp run --temp` and `--queue` run in a copy of what git tracks, and git does not track the
    user's files.  DVC sets ``DVC_ROOT`` to the main workspace.
    """
    main = Path(os.environ.get("DVC_ROOT", ".")).resolve()
    if not inputs.is_absolute() and main != Path.cwd() and (main / inputs).is_dir():
        _link_missing(main / inputs, inputs)


def _link_missing(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        here = target / path.name
        # Git tracks the folder if it tracks one file in it, such as that of `dvc add`.
        if path.is_dir() and here.is_dir() and not here.is_symlink():
            _link_missing(path, here)
        elif not os.path.lexists(here):
            here.symlink_to(path)


def digest_inputs(params: Params) -> Digests:
    """Return the digests of all files that params.yaml names."""
    cache, digests = _DigestCache(), defaultdict(dict)
    for file in params.input_files():
        digests[file.reader][f"{file.key}: {_name(file, params)}"] = cache.digest(file.path)
    cache.write()
    return dict(digests)


def _name(file: InputFile, params: Params) -> str:
    inputs = Path(params.inputs)
    inside = file.path.is_relative_to(inputs)
    return (file.path.relative_to(inputs) if inside else file.path).as_posix()


class _DigestCache:
    """Digests that are computed again only if a file's size, time or inode changed."""

    def __init__(self) -> None:
        self._path = state_folder() / "input_digests.json"
        try:
            self._known: dict[str, list[Any]] = unsealed_record(read_record(self._path))
        except (PotstillError, TypeError, ValueError):
            self._known = {}
        self._used: dict[str, list[Any]] = {}

    def digest(self, path: Path) -> str | None:
        """Return the SHA-256 of a file, or one over a folder's files; None if there is neither."""
        if path.is_dir():
            # Unlike rglob, glob goes into linked folders.
            names = glob("**", root_dir=path, recursive=True, include_hidden=True)
            inside = [name for name in names if (path / name).is_file()]
            return sha256_json({name: self._file_digest(path / name) for name in inside})
        # A pipe or a socket would block.
        return self._file_digest(path) if path.is_file() else None

    def _file_digest(self, path: Path) -> str:
        status, name = path.stat(), str(path.resolve())
        state = [status.st_size, status.st_mtime_ns, status.st_ino]
        known = self._known.get(name)
        digest = known[-1] if known and known[:-1] == state else sha256_file(path)
        self._used[name] = [*state, digest]
        return digest

    def write(self) -> None:
        """Keep the digests that were asked for, with those of other workspaces."""
        kept = self._known | self._used
        if kept != self._known:
            write_json(self._path, sealed_record(kept))
