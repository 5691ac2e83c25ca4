"""Finished trainings, kept outside DVC's outputs under the digest of all that determines them.

So a new seed trains one student, old settings find theirs again, and a killed stage goes on with
what is missing.  Any number of processes may train one key at once: each writes a folder of its
own, and the first to finish gives the result.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import (
    disk_errors,
    link_or_copy,
    read_json,
    set_aside,
    sha256_folder,
    sweep,
    temporary_path,
    write_json,
)
from pipeline_lib.engine.local import Tell, run_jobs
from pipeline_lib.storage.store import check_state_folder, state_folder

SEAL = "sealed.json"
"""In the folder of a finished result: the digest of the folder's other files."""


@dataclass(frozen=True)
class Trained:
    """The place of one training's result.

    :ivar kind: students or encoders; :ivar key: digest of all that determines it.
    """

    kind: str
    key: str

    @property
    def folder(self) -> Path:
        """Where the finished model lies."""
        return state_folder() / self.kind / self.key

    @property
    def checkpoint(self) -> Path:
        """Where the training keeps its state."""
        return state_folder() / "checkpoints" / f"{self.kind}-{self.key}.safetensors"

    def is_whole(self) -> bool:
        """Whether it is there, finished and undamaged."""
        # Results of earlier versions have their seal beside the folder.
        beside = self.folder.with_suffix(".json")
        inside = self.folder / SEAL
        try:
            seal = read_json(inside if inside.exists() else beside)
            return seal == {"sha256": sha256_folder(self.folder, SEAL)}
        except (DistilleryError, OSError):
            return False

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Yield an empty folder that becomes the result, whole, when the block ends well.

        The result of another process that was first stays as it is; a damaged one is set aside.

        :raises DistilleryError: if the disk is full or the folder is not writable.
        """
        private = temporary_path(self.folder)
        sweep(self.folder.parent)
        sweep(self.checkpoint.parent)
        try:
            with disk_errors(self.folder):
                private.mkdir(parents=True)
                yield private
                write_json(private / SEAL, {"sha256": sha256_folder(private)})
                self._publish(private)
        finally:
            shutil.rmtree(private, ignore_errors=True)

    def _publish(self, private: Path) -> None:
        while True:
            try:
                # A folder can be renamed onto an empty one only: the first writer wins.
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

    def link_into(self, target: Path) -> None:
        """Link the result's files into ``target``."""
        for path in sorted(self.folder.iterdir()):
            if path.name != SEAL:
                link_or_copy(path, target / path.name)


class Training(Protocol):
    """A training to run: it knows where its result is kept."""

    @property
    def trained(self) -> Trained:
        """Where the result is kept."""

    @property
    def planned_rows(self) -> int:
        """About how many rows it reads, for the order in which trainings start."""


Job = TypeVar("Job", bound=Training)
Record = dict[str, Any]


def train_distinct(
    train_or_find: Callable[[Job, Tell], Record],
    jobs: Sequence[Job],
    workers: int,
    single_threaded: bool,
    hear: Callable[[int, Any], None],
) -> Iterator[tuple[int, Record]]:
    """Yield (job number, record) as the jobs end; of jobs with one key, only the first is run.

    Two rows may come to the same training, and two processes must not write one result.  The
    longest start first: the last one to end would otherwise keep the other cores waiting.  For the
    parameters see :func:`pipeline_lib.engine.local.run_jobs`.

    :raises DistilleryError: if the state folder cannot be used.
    """
    check_state_folder()
    alike: dict[str, list[int]] = {}
    for number, job in enumerate(jobs):
        alike.setdefault(job.trained.key, []).append(number)
    groups = sorted(alike.values(), key=lambda group: -jobs[group[0]].planned_rows)
    firsts = [jobs[group[0]] for group in groups]

    def pass_on(group: int, message: Any) -> None:
        hear(groups[group][0], message)

    for group, record in run_jobs(train_or_find, firsts, workers, single_threaded, pass_on):
        for number in groups[group]:
            yield number, record
