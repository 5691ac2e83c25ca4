"""Files that are either whole or absent: atomic writes, digests, hard links.

A killed process must never leave a file that looks finished, and writers must not interfere with each other.  So
everything is written under a unique temporary name in the same folder, flushed to disk, and renamed.
"""

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.interrupts import delete_unfinished, unfinished

ABANDONED_SECONDS = 24 * 3600.0
"""A temporary file or folder untouched for this long is taken to be abandoned by its writer."""
_POINTER = b"version https://git-lfs"
SEALED_BY = "record_sha256"
"""The key of a JSON object's digest of the rest of itself."""


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """Yield a hidden name beside ``path`` that no other thread, process or host uses.

    A file or folder of that name is deleted when the block ends, however it ends.
    """
    private = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    unfinished.add(private)
    try:
        yield private
    finally:
        delete_unfinished(private)


@contextmanager
def atomic_path(path: Path, keep_first: bool = False) -> Iterator[Path]:
    """Yield a temporary path that becomes ``path`` if the block succeeds, and is deleted if not.

    :param keep_first: keep a file that already exists when the block ends.
    """
    path = Path(path)
    # Renaming a link onto another link to the same file does nothing: both are there then.
    with temporary_beside(path) as private, disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        yield private
        # Opened for reading: a link into DVC's cache is not writable.
        with open(private, "rb") as handle:
            os.fsync(handle.fileno())
        if not (keep_first and _linked(private, path)):
            os.replace(private, path)


def _linked(private: Path, path: Path) -> bool:
    """Link the file to its final name unless that is taken; return False if links do not work."""
    try:
        os.link(private, path)
    except FileExistsError:
        return True
    except OSError:
        return path.exists()
    return True


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn whatever libraries raise when ``path`` cannot be written into one clear error."""
    try:
        yield
    except PotstillError:
        raise
    except Exception as error:
        # safetensors and tokenizers are written in Rust and raise their own errors.
        if not (isinstance(error, OSError | SafetensorError) or "(os error " in str(error)):
            raise
        raise PotstillError(
            f"{path}: could not be written ({getattr(error, 'strerror', None) or error}). Free "
            "disk space or make the folder writable, then run again: finished files are kept."
        ) from error


def sweep(folder: Path) -> None:
    """Delete temporary files and folders below ``folder`` whose writers were killed long ago."""
    for parent, folders, names in os.walk(folder):
        for path in (Path(parent, name) for name in [*folders, *names] if _is_temporary(name)):
            # Its writer may finish, or another process delete it, at any moment.
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")


def set_aside(path: Path, quarantine: Path, inode: int) -> None:
    """Move a damaged file or folder into ``quarantine``, unless another process has done so.

    :param inode: of the file or folder found damaged: what is at ``path`` by now may be intact.
    """
    quarantine.mkdir(parents=True, exist_ok=True)
    with open(quarantine / ".lock", "a") as lock, suppress(FileNotFoundError):
        # Held only for the move, and released by the system even if this process is killed.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if path.stat().st_ino == inode:
            target = quarantine / path.name
            if target.is_dir():
                target = quarantine / f"{path.name}.{secrets.token_hex(8)}"
            os.rename(path, target)


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Create ``folder`` if necessary, and let no other process write to it until the block ends.

    The system releases it even if this process is killed.  File systems that cannot lock a folder let everyone in.
    """
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PotstillError(
                f"{folder}: another process is writing to it. Wait until that has finished, then run again."
            ) from error
        except OSError:
            pass
        yield
    finally:
        os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as indented, key-sorted JSON, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(json_text(value), encoding="utf-8")


def json_text(value: Any) -> str:
    """Return what :func:`write_json` writes."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def write_json_lines(path: Path, rows: Iterable[Any]) -> int:
    """Write ``rows`` as JSON, one per line, atomically; return how many there were."""
    count = 0
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PotstillError(f"{path}: not found. Run `distill run` to make it.") from error
    except OSError as error:
        raise unreadable(path, error) from error
    # Integers of thousands of digits raise a ValueError too.
    except (ValueError, RecursionError) as error:
        raise PotstillError(f"{path}: not valid JSON ({error}). Delete it and run again.") from error


def read_record(path: Path, *keys: str) -> dict[str, Any]:
    """Read a JSON object that has all these keys."""
    record, fault = read_json(path), None
    if not isinstance(record, dict):
        fault = "not a JSON object"
    elif lacking := [key for key in keys if key not in record]:
        fault = f"no key {lacking[0]!r}"
    if fault:
        raise PotstillError(f"{path}: {fault}. Delete it and run `distill run` to make it again.")
    return record


def sealed_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with a digest of itself, so that a flipped bit in the file is found."""
    return {**record, SEALED_BY: _digest_as_read(record)}


def unsealed_record(record: Any) -> dict[str, Any]:
    """Return what :func:`sealed_record` took; what has no digest, an older version wrote.

    :raises ValueError: if it was altered, or is no JSON object.
    """
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    content = {key: value for key, value in record.items() if key != SEALED_BY}
    if record.get(SEALED_BY, wanted := _digest_as_read(content)) != wanted:
        raise ValueError(f"altered since it was written (its digest is not its {SEALED_BY})")
    return content


def _digest_as_read(record: Mapping[str, Any]) -> str:
    # A JSON file has strings for integer keys, and lists for tuples.
    return sha256_json(json.loads(json_text(record)))


def unreadable(path: Path, error: OSError) -> PotstillError:
    """Return the error that says why the system cannot read a file."""
    return PotstillError(
        f"{path}: could not be read ({error.strerror or error}). Put a readable file there, then run again."
    )


def check_no_pointer(path: Path) -> None:
    """Check that a file, or each file of a folder, is not what Git LFS leaves in its place."""
    for each in sorted(path.iterdir()) if path.is_dir() else [path]:
        if each.is_file():
            with each.open("rb") as file:
                if file.read(len(_POINTER)) == _POINTER:
                    raise PotstillError(f"{each}: a Git LFS pointer, not the file itself. Run `git lfs pull` there.")


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sha256_folder(folder: Path) -> str:
    """Return one SHA-256 over the names and contents of all files below ``folder``, in hex."""
    total = hashlib.sha256()
    for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
        total.update(f"{path.relative_to(folder).as_posix()}\0{sha256_file(path)}\n".encode())
    return total.hexdigest()


def sha256_json(value: Any) -> str:
    """Return the SHA-256 of ``value`` as canonical JSON, in hex: the key of a set of settings."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's bytes, atomically."""
    with atomic_path(target) as temporary:
        shutil.copyfile(source, temporary)


def link_or_copy(source: Path, target: Path) -> None:
    """Place ``source`` at ``target`` by hard link, or by copying where links do not work."""
    with atomic_path(target) as temporary:
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)


def fresh_folder(folder: Path) -> Path:
    """Empty ``folder``, creating it if necessary, and return it."""
    folder = Path(folder)
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise PotstillError(f"{path}: a file, where a folder is needed. Move it away, then run again.")
    with disk_errors(folder):
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    return folder
