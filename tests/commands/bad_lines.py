"""File systems whose line is cut, or that cannot be reached."""

import io
from pathlib import Path
from typing import Any, ClassVar

from fsspec.implementations.memory import MemoryFileSystem


class Cut(io.BytesIO):
    """A file of which half can be read."""

    def read(self, _: int | None = None) -> bytes:
        if self.tell():
            raise ConnectionError("the line was cut")
        return super().read(len(self.getvalue()) // 2)


class Failing(MemoryFileSystem):
    """Fails for good once so many files were copied, and leaves half of the next one."""

    protocol = "failing"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    left = 1000

    def put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        content = Path(lpath).read_bytes()
        self.pipe_file(rpath, content[: None if self._count() else len(content) // 2])
        if type(self).left < 0:
            raise ConnectionError("the line was cut")

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        stream = super()._open(path, mode, **options)
        return stream if mode != "rb" or self._count() else Cut(stream.getvalue())

    def _count(self) -> bool:
        type(self).left -= 1
        return type(self).left >= 0


class Unreachable(MemoryFileSystem):
    protocol = "unreachable"

    def info(self, path: str, **_: Any) -> Any:
        raise OSError("no route to host")

    find = info
