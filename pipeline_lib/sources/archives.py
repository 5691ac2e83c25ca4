"""Reading single members of zip (wheel) and tar archives, including nested archives.

Members are never unpacked under their own names: a member called ``../x`` can write nowhere.
"""

import difflib
import hashlib
import io
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path, disk_errors

MODEL_SUFFIXES = (".json", ".jinja", ".txt", ".safetensors", ".model")
"""Files of a model folder that are used; pickled weights and code are ignored."""


def read_member(archive: Path, member: str) -> bytes:
    """Return the bytes of one member; see :func:`open_member`."""
    with open_member(archive, member) as stream:
        return stream.read()


@contextmanager
def open_member(archive: Path, member: str) -> Iterator[IO[bytes]]:
    """Open one member for reading; it is unpacked as it is read, and never written.

    :param archive: a zip, wheel or tar file.
    :param member: path in the archive; ``inner.tar.gz!path`` reaches into an archive inside it,
        which is held in memory.
    """
    where = str(archive)
    current: Path | bytes = Path(archive)
    *outer, last = member.split("!")
    for inner in outer:
        with _Archive.open(current, where) as opened:
            current = opened.read(inner)
        where = f"{where}!{inner}"
    with _Archive.open(current, where) as opened, opened.stream(last) as stream:
        yield stream


def join_members(members: Iterable[tuple[Path, str]], target: Path) -> str:
    """Concatenate members of archives into ``target``; return its SHA-256, in hex.

    :param members: (archive, member) of each, as :func:`open_member` takes them.
    """
    digest = hashlib.sha256()
    with atomic_path(target) as temporary, open(temporary, "wb") as sink:
        for archive, member in members:
            with open_member(archive, member) as source:
                while piece := source.read(1 << 20):
                    digest.update(piece)
                    # Otherwise a full disk would be taken for a truncated archive.
                    with disk_errors(target):
                        sink.write(piece)
    return digest.hexdigest()


def extract_folder(archive: Path, folder: str, target: Path) -> list[Path]:
    """Write the model files that are directly in ``folder`` of ``archive`` into ``target``.

    Sub-folders are skipped, and so are files with none of :data:`MODEL_SUFFIXES`.
    """
    prefix = folder.strip("/") + "/"
    written = []
    with _Archive.open(Path(archive), str(archive)) as opened:
        for name in opened.names:
            rest = name.removeprefix(prefix)
            if rest == name or not _is_model_file(rest, name, archive):
                continue
            with atomic_path(target / rest) as temporary, open(temporary, "wb") as sink, opened.stream(name) as source:
                shutil.copyfileobj(source, sink, 1 << 20)
            written.append(target / rest)
        if not written:
            folders = {name.rpartition("/")[0] for name in opened.names} - {""}
            raise PotstillError(
                f"{archive}: no model files in folder {folder!r}{_close(folder, folders)}. Correct "
                "`folder` in params.yaml."
            )
    return written


def _is_model_file(rest: str, name: str, archive: Path) -> bool:
    if ".." in rest.replace("\\", "/").split("/") or rest.startswith("/") or ":" in rest:
        raise PotstillError(f"{archive}: member {name!r} leads out of its folder. Do not use this archive.")
    return "/" not in rest and "\\" not in rest and rest.endswith(MODEL_SUFFIXES)


class _Archive:
    """An open zip or tar file: the names of its files, and a stream for each."""

    def __init__(self, where: str, handle: zipfile.ZipFile | tarfile.TarFile) -> None:
        self.where = where
        self.handle = handle
        if isinstance(handle, zipfile.ZipFile):
            self.names = [name for name in handle.namelist() if not name.endswith("/")]
        else:
            self.names = [entry.name for entry in handle.getmembers() if entry.isfile()]

    @classmethod
    @contextmanager
    def open(cls, content: Path | bytes, where: str) -> Iterator["_Archive"]:
        source: Path | IO[bytes] = io.BytesIO(content) if isinstance(content, bytes) else content
        try:
            with _open_any(source) as handle:
                yield cls(where, handle)
        except FileNotFoundError as error:
            raise PotstillError(f"{where}: not found. Run the stage again.") from error
        except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError) as error:
            raise PotstillError(
                f"{where}: truncated or invalid zip or tar archive ({error}). Delete it and run again."
            ) from error
        except RuntimeError as error:  # for encrypted members, and unknown compressions
            raise PotstillError(
                f"{where}: cannot be unpacked ({str(error).rstrip('.')}). Pack it again as a zip "
                "or tar.gz without a password."
            ) from error

    def read(self, name: str) -> bytes:
        with self.stream(name) as source:
            return source.read()

    def stream(self, name: str) -> IO[bytes]:
        if name not in self.names:
            raise PotstillError(
                f"{self.where}: no member {name!r}{_close(name, self.names)}. Correct the path in params.yaml."
            )
        if isinstance(self.handle, zipfile.ZipFile):
            return self.handle.open(name)
        stream = self.handle.extractfile(name)
        assert stream is not None, "only regular files are listed"
        return stream


def _open_any(source: Path | IO[bytes]) -> zipfile.ZipFile | tarfile.TarFile:
    if zipfile.is_zipfile(source):
        return zipfile.ZipFile(source)
    if isinstance(source, Path):
        return tarfile.open(source)
    source.seek(0)
    return tarfile.open(fileobj=source)


def _close(name: str, known: "list[str] | set[str]") -> str:
    """Return a hint that lists known names similar to ``name``, or else the first few."""
    base = name.rpartition("/")[2]
    same = sorted(other for other in known if base and other.rpartition("/")[2] == base)
    close = same or difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    if close:
        return f"; close: {', '.join(close[:3])}"
    return f"; there are: {', '.join(sorted(known)[:5])}{', ...' if len(known) > 5 else ''}"
