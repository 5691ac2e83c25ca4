"""A content-addressed store: what was computed once is never computed again.

An entry is one file, found by the digest of everything that determines it.  DVC does not know about the store: its
stages link entries into their outputs, so a killed stage loses only what it was computing.

Layout: ``<root>/<kind>/<key[:2]>/<key>.arrow`` beside ``<key>.json`` (rows, bytes, SHA-256, and a digest of itself),
which is written second: an entry without it was interrupted.  Entries are never changed in place, since hard links
share them with the workspace and DVC's cache; those that fail their digest are moved to ``<root>/quarantine``.

Any number of processes, on any number of machines, may write at once.  Nothing is locked: each
writes under a unique name, and the first one to finish a key provides the entry.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_lib.base import stage_records
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import (
    link_or_copy,
    read_record,
    sealed_record,
    set_aside,
    sha256_file,
    sha256_json,
    sweep,
    unsealed_record,
    write_json,
)
from pipeline_lib.base.layout import check_state_folder, state_folder
from pipeline_lib.shards.shard_sets import Shard, read_shard, write_shard


class Store:
    """Content-addressed files of one kind.

    :param kind: names the sub-folder, e.g. ``logits``; ``root`` is by default below :func:`state_folder`.
    """

    def __init__(self, kind: str, root: Path | None = None) -> None:
        if root is None:
            check_state_folder()
        self.root = root or state_folder() / "store"
        self.folder = self.root / kind

    def find(self, key: str) -> Shard | None:
        """Return the entry of ``key`` if it exists and is intact; quarantine a damaged one."""
        path, record = self._paths(key)
        try:
            inodes = [file.stat().st_ino for file in (path, record)]
            shard = read_entry(record)
            if path.stat().st_size == shard.bytes and sha256_file(path) == shard.sha256:
                with suppress(OSError):
                    # When it was last used: `distill store gc` keeps what is.
                    os.utime(record)
                return shard
        except FileNotFoundError:
            return None
        except PotstillError:
            pass
        for file, inode in zip((path, record), inodes, strict=True):
            set_aside(file, self._quarantine, inode)
        return None

    def add(
        self,
        key: str,
        table: pa.Table,
        source: str | None = None,
        computed_on: str | None = None,
        counts: dict[str, Any] | None = None,
    ) -> Shard:
        """Write ``table`` as the entry of ``key``; once this returns, no kill can lose it.

        If another process was first, its file is kept and described: the record then matches the
        file even if an accelerator computed different last digits.
        """
        path, record = self._paths(key)
        shard = write_shard(path, table, source, keep_first=True)
        if not _is_of_writer(path, table):
            with suppress(FileNotFoundError):
                set_aside(path, self._quarantine, path.stat().st_ino)
            shard = write_shard(path, table, source, keep_first=True)
        shard = replace(shard, computed_on=computed_on, counts=counts)
        _write_entry(record, shard)
        return shard

    def take(self, key: str, path: Path, shard: Shard) -> None:
        """Add a finished file, as a manifest describes it, as the entry of ``key``."""
        if not path.exists() or sha256_file(path) != shard.sha256:
            raise PotstillError(
                f"{path}: missing or altered (its SHA-256 is not the manifest's). Run `dvc checkout`, and try again."
            )
        entry, record = self._paths(key)
        entry.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(path, entry)
        _write_entry(record, replace(shard, name=entry.name))

    def has(self, key: str) -> bool:
        """Whether there is an entry of ``key``; its bytes are not checked."""
        return all(part.exists() for part in self._paths(key))

    def read(self, key: str) -> pa.Table:
        """Memory-map the entry of ``key``; it must have been found or added before."""
        return read_shard(self._paths(key)[0])

    def link_into(self, key: str, target: Path) -> None:
        """Link the entry of ``key`` to ``target``; it must have been found or added before."""
        link_or_copy(self._paths(key)[0], target)

    def sweep(self) -> None:
        """Delete what writers that were killed long ago left behind."""
        sweep(self.folder)

    @property
    def _quarantine(self) -> Path:
        return self.root / "quarantine"

    def _paths(self, key: str) -> tuple[Path, Path]:
        folder = self.folder / key[:2]
        return folder / f"{key}.arrow", folder / f"{key}.json"


def read_entry(record: Path) -> Shard:
    """Return what the record of an entry says of its file."""
    try:
        return Shard(**unsealed_record(read_record(record)))
    except (TypeError, ValueError) as error:
        raise PotstillError(
            f"{record}: no record of an entry ({error}). Delete it and run `distill run` to make it again."
        ) from error


def _write_entry(record: Path, shard: Shard) -> None:
    write_json(record, sealed_record(asdict(shard)))


def _is_of_writer(path: Path, table: pa.Table) -> bool:
    """Whether a file holds the table, or is another running writer's, who will describe it.

    One that a killed writer left without a record may have been damaged since.
    """
    try:
        stored = read_shard(path)
    except PotstillError:
        return False
    if not stored.schema.equals(table.schema) or stored.num_rows != table.num_rows:
        return False
    return stored.equals(table) or path.stat().st_mtime >= stage_records.STARTED


def kept_table(kind: str, made_from: Any, compute: Callable[[], pa.Table]) -> pa.Table:
    """Return a table of a kind from the store, or compute and store it.

    :param made_from: all that determines it, as JSON: digests of what it is about, settings, code.
    """
    store, key = Store(kind), sha256_json(made_from)
    if store.find(key) is None:
        store.add(key, compute())
    return store.read(key)


def kept_json(kind: str, made_from: Any, compute: Callable[[], Any]) -> Any:
    """Return a JSON value from the store, or compute and store it; see :func:`kept_table`."""
    return _value_in(kept_table(kind, made_from, lambda: _table_of(compute())))


def kept_together(
    kind: str, made_from: Mapping[str, Any], compute: Callable[[list[str]], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return JSON values by name, from what determines each; those that are not in the store are computed together."""
    store, keys = Store(kind), {name: sha256_json(parts) for name, parts in made_from.items()}
    missing = [name for name, key in keys.items() if store.find(key) is None]
    for name, value in (compute(missing) if missing else {}).items():
        store.add(keys[name], _table_of(value))
    return {name: _value_in(store.read(key)) for name, key in keys.items()}


def _table_of(value: Any) -> pa.Table:
    return pa.table({"json": [json.dumps(value)]})


def _value_in(table: pa.Table) -> Any:
    return json.loads(table["json"][0].as_py())
