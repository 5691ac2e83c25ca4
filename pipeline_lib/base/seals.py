"""Digests beside files: what is read of a folder is what was written there; shard sets have theirs in a manifest."""

from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, sha256_file, write_json

SEAL, SOURCE = RECORDS = "sealed.json", "source.json"
"""The digests of what a stage made, and of what was fetched, which may cover folders below."""
DEPTH = 2
"""How many folders below its own a record may cover: raw/checkpoints/<teacher>/<task>."""


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256, in hex, of each file below ``folder`` by its path, without its seal."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256_file(path) for path in files if path != folder / SEAL}


def write_seal(folder: Path, files: dict[str, str] | None = None) -> None:
    """Write a folder's seal.

    :param files: the digests by path, if they are known; by default all files are read.
    """
    write_json(folder / SEAL, {"sha256": digests(folder) if files is None else files})


def sealed_files(record: Path) -> dict[str, str]:
    """Return the digests that a record lists, by path below its folder."""
    files = _listed(read_json(record))
    if files is None:
        raise PotstillError(f"{record}: no table of digests")
    return files


def check_sealed(path: Path) -> None:
    """Check the files of a folder, or one file, against the digests beside or above them.

    What nobody has sealed, such as an exported student or a model of one's own, is not checked.
    """
    path = Path(path)
    above = [path, *path.parents[: DEPTH + 1]]
    for record in (folder / name for folder in above for name in RECORDS):
        if is_seal(record) and (faults := faults_of(record, path)):
            raise PotstillError(f"{faults[0]}. Delete {record.parent} and run `distill run` to make it again.")


def faults_of(record: Path, only: Path | None = None) -> list[str]:
    """Return one line per file that a record lists and that is missing or altered."""
    try:
        files = {record.parent / name: digest for name, digest in sealed_files(record).items()}
    except PotstillError as error:
        return [str(error)]
    above = (only or record.parent).absolute()
    inside = {path: files[path] for path in files if path.absolute().is_relative_to(above)}
    return [line for path in inside if (line := _fault(path, inside[path], record.name))]


def _fault(path: Path, digest: str, record: str) -> str | None:
    try:
        altered = sha256_file(path) != digest
    except FileNotFoundError:
        return f"{path}: missing, though {record} lists it"
    except OSError as error:
        return f"{path}: could not be read ({error.strerror or error})"
    return f"{path}: altered since it was written (its SHA-256 is not {record}'s)" if altered else None


def is_seal(record: Path) -> bool:
    """Whether a file is there and is a seal, whole or damaged, or the record of what was fetched.

    Another program's folder may have a source.json, too.
    """
    if not record.is_file():
        return False
    return record.name == SEAL or _listed(read_json(record)) is not None


def _listed(record: Any) -> dict[str, str] | None:
    files = record.get("sha256") if isinstance(record, dict) else None
    if isinstance(files, dict) and all(isinstance(digest, str) for digest in files.values()):
        return files
    return None
