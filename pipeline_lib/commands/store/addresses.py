"""Other state folders, in a directory or wherever fsspec reaches: what is there, and copies of it.

The layout is that of a state folder, so a copy of one is an address too.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Self

from pipeline_lib.base.errors import PotstillError, reason_of

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_CHUNK = 1 << 22
_AT_ONCE = 16
_PACKAGES = {"smbclient": "smbprotocol"}
"""Packages that have another name than what is imported of them."""


class RefusedError(PotstillError):
    """A file at an address is missing, or is not what it should be; others may be sound."""


@dataclass(frozen=True)
class Address:
    """Where another state folder is, or will be.

    :ivar url: as the user wrote it.
    :ivar files: fsspec's file system; :ivar root: the folder in it.
    """

    url: str
    files: "AbstractFileSystem"
    root: str

    @classmethod
    def open(cls, url: str) -> Self:
        """Open an address; there may be nothing yet."""
        from fsspec.core import url_to_fs

        try:
            files, root = url_to_fs(url)
            files.invalidate_cache()
        except ImportError as error:
            package = getattr(error.__cause__, "name", None)
            remedy = f" Run `pip install {_PACKAGES.get(package, package)}`." if package else ""
            raise PotstillError(f"{url}: {reason_of(error)}.{remedy}") from error
        except ValueError as error:
            raise PotstillError(
                f"{url}: {reason_of(error)}. Name a directory, or an address that fsspec knows, "
                "such as s3://bucket/folder."
            ) from error
        except Exception as error:
            raise PotstillError(_unreachable(url, error)) from error
        return cls(url.rstrip("/"), files, root.rstrip("/"))

    @property
    def at_once(self) -> int:
        """How many files to copy at once: object stores answer slowly, but any number of times."""
        return _AT_ONCE if self._stores_objects else 1

    @property
    def _stores_objects(self) -> bool:
        # fsspec's drivers of object stores work asynchronously; few others do.
        return self.files.async_impl

    def name(self, path: str) -> str:
        """Return what to call a file in messages."""
        return f"{self.url}/{path}"

    def check_exists(self) -> None:
        """Check that the folder is there."""
        with self._reaching(""):
            self.files.info(self.root)

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the bytes of each file below a folder, by path from the root; it may be missing."""
        with self._reaching(folder):
            listed = self.files.find(f"{self.root}/{folder}", detail=True)
        start = len(self.root) + 1
        return {name[start:]: info.get("size") or 0 for name, info in listed.items()}

    def read(self, path: str) -> Iterator[bytes]:
        """Yield the bytes of a file."""
        with self._reaching(path), self.files.open(f"{self.root}/{path}", "rb") as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk

    def fetch(self, path: str, target: Path, digest: str) -> None:
        """Copy a file to ``target``.

        :raises RefusedError: if its SHA-256 is another.
        """
        total = hashlib.sha256()
        with target.open("wb") as sink:
            for chunk in self.read(path):
                total.update(chunk)
                sink.write(chunk)
        if total.hexdigest() != digest:
            raise RefusedError(f"{self.name(path)}: altered (its SHA-256 is not its record's)")

    def send(self, source: Path, path: str) -> None:
        """Copy ``source`` to the address."""
        folder, _, name = f"{self.root}/{path}".rpartition("/")
        # Object stores show what is uploaded once it is complete, and cannot rename.
        first = name if self._stores_objects else f".{name}.{token_hex(8)}.tmp"
        with self._reaching(path):
            try:
                self._put(source, folder, first)
                size, arrived = source.stat().st_size, self.files.info(f"{folder}/{first}")["size"]
                if arrived != size:
                    raise PotstillError(f"{self.name(path)}: {arrived:,} of {size:,} bytes arrived. Push again.")
                if first != name:
                    self.files.mv(f"{folder}/{first}", f"{folder}/{name}")
            except BaseException:
                if first != name:
                    with suppress(Exception):
                        self.files.rm_file(f"{folder}/{first}")
                raise

    def _put(self, source: Path, folder: str, name: str) -> None:
        try:
            self.files.put_file(str(source), f"{folder}/{name}")
        except Exception:
            # Object stores need no folders; others say in many ways that one is missing.
            self.files.makedirs(folder, exist_ok=True)
            self.files.put_file(str(source), f"{folder}/{name}")

    def delete(self, path: str) -> None:
        """Delete a file."""
        with self._reaching(path):
            self.files.rm_file(f"{self.root}/{path}")

    @contextmanager
    def _reaching(self, path: str) -> Iterator[None]:
        """Turn what drivers raise, each in its own way, into one clear error."""
        where = self.name(path) if path else self.url
        try:
            yield
        except PotstillError:
            raise
        except (FileNotFoundError, NotADirectoryError) as error:
            raise RefusedError(f"{where}: not found") from error
        except PermissionError as error:
            raise RefusedError(f"{where}: no permission ({reason_of(error)})") from error
        except Exception as error:
            raise PotstillError(_unreachable(where, error)) from error


def _unreachable(where: str, error: Exception) -> str:
    return (
        f"{where}: could not be reached ({reason_of(error)}). Check the address and your access, "
        "then run again: what has been copied is skipped."
    )
