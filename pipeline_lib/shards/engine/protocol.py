"""The protocol of engines, which run independent jobs.

Whichever engine runs the jobs, and with however many workers, the results are the same bytes.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
Report = Callable[[Any], None]
"""What a job calls to report its progress; the message reaches ``on_progress``."""
OnProgress = Callable[[int, Any], None]
"""Called with (job number, message) in the process that runs the jobs."""

IN_FLIGHT = 2
"""Jobs of a stream, waiting or running, that are held in memory per worker."""


def throttled(send: Report, seconds: float) -> Report:
    """Return a function that passes on a message at most once in so many seconds."""
    last = 0.0

    def report(message: Any) -> None:
        nonlocal last
        if time.monotonic() - last > seconds:
            last = time.monotonic()
            send(message)

    return report


class Engine(Protocol):
    """Runs jobs; functions must be module-level, and jobs picklable."""

    @property
    def workers(self) -> int:
        """How many jobs are computed at a time."""

    def run(
        self,
        function: Callable[[Job, Report], Result],
        jobs: Sequence[Job],
        on_progress: OnProgress | None = None,
        preload: Callable[[], None] | None = None,
        in_flight: int = 1,
    ) -> Iterator[tuple[int, Result]]:
        """Yield (job number, result) as the jobs end, in any order.

        :param preload: loads what all jobs need; called once before workers that share this
            process's memory are started, and not at all if none do.
        :param in_flight: how many jobs may run at a time, in threads, where one process runs all.
        """

    def stream(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        """Yield the results of any number of jobs, in the jobs' order.

        ``jobs`` is read only a few (:data:`IN_FLIGHT`) ahead of the results taken so far.
        """
