"""Entries copied to an address and from there, each whole or not at all.

A file arrives before the record or seal that names its digest, so what a killed command leaves does
not count.  At an address anybody may have written: names and digests are checked before use.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, StringConstraints, TypeAdapter, ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import unsealed_record
from pipeline_lib.base.layout import check_state_folder, state_folder
from pipeline_lib.base.record_files import Record
from pipeline_lib.base.seals import SEAL
from pipeline_lib.commands.store.addresses import Address, RefusedError
from pipeline_lib.shards.entries import TRAINED, Entry, entries
from pipeline_lib.shards.shard_sets import Shard
from pipeline_lib.shards.store import Store
from pipeline_lib.shards.trained import Trained

_OUTPUT = re.compile(r"store/(?!quarantine/)([a-z][a-z0-9_]*)/([0-9a-f]{2})/(\2[0-9a-f]{62})\.json")
_TRAINING = re.compile(rf"({'|'.join(TRAINED)})/([0-9a-f]{{64}})/{re.escape(SEAL)}")


@dataclass(frozen=True)
class Copied:
    """What became of one entry.

    :ivar is_new: whether it was copied; else it was there, or has a fault.
    :ivar fault: why it was not copied, if so.
    """

    kind: str
    bytes: int = 0
    is_new: bool = False
    fault: str | None = None


@dataclass(frozen=True)
class Listed:
    """An entry at an address.

    :ivar record: the path of its record or seal; :ivar sizes: bytes by path, of its files at least.
    """

    address: Address
    kind: str
    key: str
    record: str
    sizes: Mapping[str, int]

    @property
    def is_training(self) -> bool:
        """Whether it is a folder with a seal."""
        return self.record.endswith(f"/{SEAL}")

    def shard(self) -> Shard:
        """Return what the record of a pass's output says.

        :raises RefusedError: if it is no such record, or the file is missing or torn.
        """
        shard = self._parsed(_SHARD)
        size, path = self._size(self.file), self.address.name(self.file)
        if size != shard.bytes:
            raise RefusedError(f"{path}: {size:,} bytes, its record says {shard.bytes:,} (torn)")
        return shard

    @property
    def file(self) -> str:
        """The path of a pass's output."""
        return self.record.removesuffix(".json") + ".arrow"

    def sealed(self) -> dict[str, str]:
        """Return the digests of a training's files, by path below its folder.

        :raises RefusedError: if the seal is none, or a file is missing.
        """
        files = self._parsed(_SEAL).sha256
        for name in files:
            self._size(self.path(name))
        return files

    def path(self, name: str) -> str:
        """Return the path of a training's file."""
        return self.record.removesuffix(SEAL) + name

    def _size(self, path: str) -> int:
        if path not in self.sizes:
            raise RefusedError(f"{self.address.name(path)}: missing, though its record is there")
        return self.sizes[path]

    def _parsed(self, kind: TypeAdapter[Any]) -> Any:
        try:
            return kind.validate_json(b"".join(self.address.read(self.record)), extra="forbid")
        except ValidationError as error:
            fault = error.errors()[0]["msg"]
            raise RefusedError(f"{self.address.name(self.record)}: no record ({fault})") from error


def _below(name: str) -> str:
    """Return the name of a file in a folder if it leads nowhere else."""
    parts = PurePosixPath(name).parts
    if name in ("", SEAL) or "/".join(parts) != name or ".." in parts or not name.isprintable():
        raise ValueError(f"{name!r} is no file of its folder")
    return name


class _Seal(Record):
    sha256: dict[Annotated[str, AfterValidator(_below)], Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]]


_SHARD = TypeAdapter(Annotated[Shard, BeforeValidator(unsealed_record)])
_SEAL = TypeAdapter(_Seal)


def entries_at(address: Address, kinds: Sequence[str]) -> list[Listed]:
    """Return the finished entries at an address.

    :param kinds: just these; empty: all.
    """
    remedy = "Name a folder that `distill store push` wrote to, or the `.potstill` of another workspace."
    try:
        address.check_exists()
    except RefusedError as error:
        raise PotstillError(f"{error}. {remedy}") from error
    folders = [name for kind in kinds for name in _folders(kind)] or ["store", *TRAINED]
    sizes = {path: size for folder in folders for path, size in address.sizes(folder).items()}
    listed = []
    for path in sorted(sizes):
        if match := _OUTPUT.fullmatch(path) or _TRAINING.fullmatch(path):
            listed.append(Listed(address, match[1], match[match.lastindex], path, sizes))
    known = {one.kind for one in listed}
    if unknown := [kind for kind in kinds if kind not in known]:
        raise PotstillError(
            f"{address.url}: no entries of the kind {unknown[0]!r}. Without --kind, all that are there are taken."
        )
    if not listed:
        raise PotstillError(f"{address.url}: no entries. {remedy}")
    return listed


def _folders(kind: str) -> list[str]:
    return [kind] if kind in TRAINED else [f"store/{kind}"]


def push(chosen: Sequence[Entry], address: Address) -> Iterator[Copied]:
    """Copy entries to an address, and yield what became of each."""
    folders = {folder for entry in chosen for folder in _folders(entry.kind)}
    try:
        sizes = {path: size for folder in folders for path, size in address.sizes(folder).items()}
    except RefusedError as error:
        # As a bucket can be; a folder that is missing is made.
        raise PotstillError(f"{error}. Create it or get access, then push again.") from error
    yield from _each(lambda entry: _send(entry, address, sizes), chosen, address.at_once)


def _send(entry: Entry, address: Address, there: Mapping[str, int]) -> Copied:
    root = state_folder()
    files = {path.relative_to(root).as_posix(): path for path in entry.files}
    record = [*files][-1]
    known = {path: there.get(path) for path in files}
    if known == {path: file.stat().st_size for path, file in files.items()}:
        return Copied(entry.kind, entry.bytes)
    listed = Listed(address, entry.kind, entry.key, record, there)
    if record in there and _is_of_another(listed, entry):
        return Copied(entry.kind, entry.bytes)
    if not entry.is_whole():
        fault = f"{entry.paths[0]}: damaged, not sent; it will be computed again"
        return Copied(entry.kind, fault=fault)
    if record in there:
        # Or it would vouch for files that are being replaced.
        address.delete(record)
    for path, file in files.items():
        address.send(file, path)
    return Copied(entry.kind, entry.bytes, is_new=True)


def _is_of_another(listed: Listed, entry: Entry) -> bool:
    """Whether an entry at an address is complete, and of another machine: it has other digits."""
    try:
        digests = listed.sealed().values() if listed.is_training else [listed.shard().sha256]
    except RefusedError:
        return False
    return {*digests} != entry.digests


def pull(chosen: Sequence[Listed]) -> Iterator[Copied]:
    """Copy entries at an address into this workspace's state folder; yield what became of each."""
    check_state_folder()
    here = {(entry.kind, entry.key): entry for entry in entries()}

    def receive(listed: Listed) -> Copied:
        entry = here.get((listed.kind, listed.key))
        if entry is not None and entry.is_whole():
            return Copied(listed.kind, entry.bytes)
        try:
            take = _receive_training if listed.is_training else _receive_output
            return Copied(listed.kind, take(listed), is_new=True)
        except RefusedError as error:
            return Copied(listed.kind, fault=f"{error}; not taken")

    yield from _each(receive, chosen, chosen[0].address.at_once if chosen else 1)


def _receive_output(listed: Listed) -> int:
    """Take the output of a pass; return its bytes."""
    shard = listed.shard()
    with Store(listed.kind).receiving(listed.key, shard) as path:
        listed.address.fetch(listed.file, path, shard.sha256)
    return shard.bytes + listed.sizes[listed.record]


def _receive_training(listed: Listed) -> int:
    """Take a training; return its bytes."""
    files = listed.sealed()
    with Trained(listed.kind, listed.key).writing() as folder:
        for name, digest in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            listed.address.fetch(listed.path(name), folder / name, digest)
    return sum(listed.sizes[listed.path(name)] for name in (*files, SEAL))


One = TypeVar("One")


def _each(copy: Callable[[One], Copied], chosen: Sequence[One], at_once: int) -> Iterator[Copied]:
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(copy, chosen)
