"""Finished trainings, kept outside DVC's outputs under the digest of all that determines them.

So a new seed trains one student, old settings find theirs again, and a killed stage goes on with
what is missing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pipeline_lib.engine import Tell, run_jobs
from pipeline_lib.files import clear_folder, link_or_copy, read_json, sha256_folder, write_json
from pipeline_lib.store import state_folder


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

    @property
    def _seal(self) -> Path:
        return self.folder.with_suffix(".json")

    def is_whole(self) -> bool:
        """Whether it is there, finished and undamaged."""
        if not self._seal.exists():
            return False
        return read_json(self._seal).get("sha256") == sha256_folder(self.folder)

    def clear(self) -> Path:
        """Return the folder, emptied, to write the result into."""
        return clear_folder(self.folder)

    def seal(self) -> None:
        """Declare the result finished: without a seal it was interrupted, or has been damaged."""
        write_json(self._seal, {"sha256": sha256_folder(self.folder)})

    def place(self, target: Path) -> None:
        """Link the result's files into ``target``."""
        for path in sorted(self.folder.iterdir()):
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
    parameters see :func:`pipeline_lib.engine.run_jobs`.
    """
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
