"""Files that are either whole or absent: atomic writes, digests, hard links.

A killed process must never leave a file that looks finished.  So everything is written to a
temporary name in the same folder, flushed to the disk, and renamed.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pipeline_lib.errors import DistilleryError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path that becomes ``path`` when the block ends well, and vanishes if not.

    :param path: the final file; its folder is created.
    :raises DistilleryError: if the disk is full or the folder is not writable.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        # Opened for reading: a link to a file of DVC's cache may not be written to.
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
        # Renaming a link onto another link of the same file does nothing, and leaves both.
        temporary.unlink(missing_ok=True)
    except OSError as error:
        _discard(temporary)
        raise DistilleryError(
            f"{path}: could not be written ({error.strerror or error}). Free disk space or make "
            "the folder writable, then run again: finished files are kept."
        ) from error
    except BaseException:
        _discard(temporary)
        raise


def sweep(folder: Path) -> None:
    """Delete what killed writers left below ``folder``; the caller must be its only writer."""
    for path in Path(folder).rglob(".*.tmp"):
        _discard(path)


def _discard(temporary: Path) -> None:
    # What went wrong is to be reported, not that there is nothing to take away.
    with suppress(OSError):
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as indented, key-sorted JSON, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    :raises DistilleryError: if it is missing or torn.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DistilleryError(f"{path}: not found. Run `dvc repro` to make it.") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DistilleryError(
            f"{path}: not valid JSON ({error}). Delete it and run again."
        ) from error


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


def link_or_copy(source: Path, target: Path) -> None:
    """Place ``source`` at ``target`` by hard link, or by copy where there are no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(target) as temporary:
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)


def clear_folder(folder: Path) -> Path:
    """Make ``folder`` exist and be empty, and return it."""
    shutil.rmtree(folder, ignore_errors=True)
    Path(folder).mkdir(parents=True)
    return Path(folder)
