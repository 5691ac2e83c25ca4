"""What the state folder holds, entry by entry: outputs of passes, and results of trainings."""

import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_file
from pipeline_lib.base.layout import state_folder
from pipeline_lib.base.seals import SEAL, digests, sealed_files
from pipeline_lib.shards.store import read_entry

TRAINED = ("students", "teachers", "encoders", "vocabularies", "joint")
"""The folders of :class:`~pipeline_lib.shards.trained.Trained`."""


@dataclass(frozen=True)
class Entry:
    """One entry, of a kind of pass or of training.

    :ivar paths: its files, or its folder; :ivar digests: the SHA-256 of what it gives away.
    :ivar used: when it was last made or found, in seconds since 1970.
    :ivar rows: of an output of a pass; None for a training.
    """

    kind: str
    paths: tuple[Path, ...]
    digests: frozenset[str] = field(repr=False)
    bytes: int
    used: float
    rows: int | None = None

    def is_whole(self) -> bool:
        """Whether its bytes are those that were written."""
        try:
            if self.rows is None:
                return sealed_files(self.paths[0] / SEAL) == digests(self.paths[0])
            return sha256_file(self.paths[0]) in self.digests
        except (PotstillError, OSError):
            return False

    def is_in(self, used: Collection[str]) -> bool:
        """Whether what it gives away is among these digests."""
        return not self.digests.isdisjoint(used)

    def delete(self) -> None:
        """Delete it; its record first, so that half of it is never found."""
        for path in reversed(self.paths):
            if path.is_dir():
                (path / SEAL).unlink(missing_ok=True)
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def entries() -> Iterator[Entry]:
    """Yield the finished entries of this workspace's state folder, by kind."""
    root = state_folder()
    for folder in sorted(path for path in (root / "store").glob("*") if path.is_dir()):
        if folder.name == "quarantine":
            continue
        for record in sorted(folder.glob("??/*.json")):
            with suppress(PotstillError, OSError):
                yield _output(folder.name, record)
    for kind in TRAINED:
        for seal in sorted((root / kind).glob(f"[!.]*/{SEAL}")):
            with suppress(PotstillError, OSError):
                yield _training(kind, seal)


def _output(kind: str, record: Path) -> Entry:
    path, shard, status = record.with_suffix(".arrow"), read_entry(record), record.stat()
    if not path.exists():
        raise FileNotFoundError(path)
    size = shard.bytes + status.st_size
    return Entry(kind, (path, record), frozenset({shard.sha256}), size, status.st_mtime, shard.rows)


def _training(kind: str, seal: Path) -> Entry:
    folder, digests_of_files = seal.parent, frozenset(sealed_files(seal).values())
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Entry(kind, (folder,), digests_of_files, size, folder.stat().st_mtime)
