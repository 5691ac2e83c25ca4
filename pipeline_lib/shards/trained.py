"""Folders of results, kept outside DVC's outputs under a digest of all that determines them.

Each writer has its own folder, and the first to finish provides the result.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pipeline_lib.base import stage_records
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import disk_errors, link_or_copy, set_aside, sweep, temporary_beside
from pipeline_lib.base.layout import state_folder
from pipeline_lib.base.seals import SEAL, digests, sealed_files, write_seal


@dataclass(frozen=True)
class Trained:
    """Where the result of one training of a kind is kept, by the digest of all that determines it."""

    kind: str
    key: str

    @property
    def folder(self) -> Path:
        """Where the finished model is."""
        return state_folder() / self.kind / self.key

    @property
    def checkpoint(self) -> Path:
        """Where the training saves its state."""
        return state_folder() / "checkpoints" / f"{self.kind}-{self.key}.safetensors"

    def is_whole(self) -> bool:
        """Whether it exists, finished and undamaged."""
        try:
            return sealed_files(self.folder / SEAL) == digests(self.folder)
        except (PotstillError, OSError):
            return False

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Yield an empty folder that becomes the result, atomically, if the block succeeds.

        If another process was first, its result is kept; a damaged one is quarantined.
        """
        sweep(self.folder.parent)
        sweep(self.checkpoint.parent)
        with temporary_beside(self.folder) as private, disk_errors(self.folder):
            private.mkdir(parents=True)
            yield private
            write_seal(private)
            self._publish(private)

    def _publish(self, private: Path) -> None:
        while True:
            try:
                # A folder can only be renamed onto an empty one: the first writer wins.
                os.rename(private, self.folder)
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
            with suppress(FileNotFoundError):
                inode = self.folder.stat().st_ino
                if self.is_whole():
                    return
                set_aside(self.folder, state_folder() / "quarantine", inode)

    def link_into(self, target: Path, folder: str = ".", counted_as: str = "trainings") -> None:
        """Link the files of the result, or of one folder in it, into ``target``, and seal them.

        :param counted_as: what the stage's record calls it.
        """
        # A worker may have made it: only what is older than this process was reused.
        sealed = (self.folder / SEAL).stat().st_mtime
        stage_records.count(counted_as, sealed < stage_records.STARTED, self.key)
        with suppress(OSError):
            # When it was last used: `distill store gc` keeps what is.
            os.utime(self.folder)
        linked = {
            name: digest
            for name, digest in sealed_files(self.folder / SEAL).items()
            if Path(name).parent == Path(folder)
        }
        for name in linked:
            link_or_copy(self.folder / name, target / Path(name).name)
        write_seal(target, {Path(name).name: digest for name, digest in linked.items()})
