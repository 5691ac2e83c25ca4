"""A content-addressed store: what was computed once is never computed again.

An entry is one file, found by the digest of everything that determines it (for teacher outputs: the
teacher's weights, tokenizer, truncation, output kind, numeric policy, code version, and the input
shard's bytes).  DVC does not know the store: its stages link entries into their outputs, so a
killed stage loses only what it was computing, and going back to old settings finds everything still
there.

Layout: ``<root>/<kind>/<key[:2]>/<key>.arrow`` beside ``<key>.json`` (rows, bytes, SHA-256), which
is written second: an entry without it was interrupted.  Entries are never changed in place, since
hard links share them with the workspace and DVC's cache; what fails its digest is set aside under
``<root>/quarantine`` and computed again.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
from filelock import FileLock, Timeout

from pipeline_lib.errors import DistilleryError
from pipeline_lib.files import link_or_copy, read_json, sha256_file, sweep, write_json
from pipeline_lib.shards import Shard, read_shard, write_shard


def state_folder() -> Path:
    """Return the folder for what must outlive a killed stage: the store and training checkpoints.

    ``DISTILLERY_HOME`` where set (two machines can share it), else ``.distillery`` in the main
    repository: DVC sets ``DVC_ROOT`` for every stage, also for experiments in temporary folders.
    """
    home = os.environ.get("DISTILLERY_HOME")
    return Path(home) if home else Path(os.environ.get("DVC_ROOT", ".")) / ".distillery"


class Store:
    """Content-addressed files of one kind.

    :param kind: names the sub-folder, e.g. ``logits``.
    :param root: the store's folder; by default below :func:`state_folder`.
    """

    def __init__(self, kind: str, root: Path | None = None) -> None:
        self.root = root or state_folder() / "store"
        self.folder = self.root / kind

    def find(self, key: str) -> Shard | None:
        """Return the entry of ``key`` if it is there and whole; set a damaged one aside."""
        path, record = self._paths(key)
        if not path.exists() or not record.exists():
            return None
        try:
            shard = Shard(**read_json(record))
        except (DistilleryError, TypeError):
            self._set_aside(key)
            return None
        if path.stat().st_size != shard.bytes or sha256_file(path) != shard.sha256:
            self._set_aside(key)
            return None
        return shard

    def add(
        self, key: str, table: pa.Table, source: str | None = None, computed_on: str | None = None
    ) -> Shard:
        """Write ``table`` as the entry of ``key``; after this line no kill can lose it."""
        path, record = self._paths(key)
        shard = replace(write_shard(path, table, source), computed_on=computed_on)
        write_json(record, asdict(shard))
        return shard

    def read(self, key: str) -> pa.Table:
        """Memory-map the entry of ``key``; it must have been found or added before."""
        return read_shard(self._paths(key)[0])

    def place(self, key: str, target: Path) -> None:
        """Link the entry of ``key`` to ``target``; it must have been found or added before."""
        link_or_copy(self._paths(key)[0], target)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the store for writing.

        :raises DistilleryError: at once, if another process holds it (an orphan of a killed run,
            say).
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / ".lock"
        try:
            with FileLock(path, timeout=5):
                sweep(self.folder)
                yield
        except Timeout as error:
            raise DistilleryError(
                f"{path}: another process is writing to this store. Wait for it, or end it (a "
                "stage can survive a killed `dvc repro`), then run again."
            ) from error

    def _paths(self, key: str) -> tuple[Path, Path]:
        folder = self.folder / key[:2]
        return folder / f"{key}.arrow", folder / f"{key}.json"

    def _set_aside(self, key: str) -> None:
        quarantine = self.root / "quarantine"
        quarantine.mkdir(parents=True, exist_ok=True)
        for path in self._paths(key):
            if path.exists():
                os.replace(path, quarantine / path.name)
