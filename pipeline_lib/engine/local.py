"""Runs independent jobs: in this process, or in local worker processes.

On a CPU every job computes with one thread, in as many processes as there are cores.  Small matrix
products gain little from a second thread (two processes trained students 1.4 times as fast as one
with two threads), and a job's bytes then depend on neither the number of workers nor that of cores.
On an accelerator the jobs run one after the other in this process.
"""

import multiprocessing
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from typing import Any, TypeVar

from pipeline_lib.base.devices import single_thread
from pipeline_lib.base.errors import DistilleryError

Job = TypeVar("Job")
Result = TypeVar("Result")
Tell = Callable[[Any], None]
"""What a job calls to say how far it is; the message reaches ``run_jobs``'s ``hear``."""

START = "fork" if sys.platform == "linux" else "spawn"
"""A fork has every import, and every model, that its parent has: nothing is loaded twice.  That is
safe as long as the parent has computed with one thread only:
:func:`~pipeline_lib.base.devices.single_thread`."""

IN_FLIGHT = 2
"""Jobs of a stream that wait or run, per worker: so many are held in memory."""

_messages: Any = None


def worker_count(device: str, wanted: int | None = None) -> int:
    """Return how many processes compute: on a CPU ``wanted``, or a core each; elsewhere one.

    A process that has initialised an accelerator must not be forked, and workers would share it.
    """
    if device != "cpu":
        return 1
    return wanted or max(1, len(os.sched_getaffinity(0)))


def run_jobs(
    function: Callable[[Job, Tell], Result],
    jobs: Sequence[Job],
    workers: int,
    single_threaded: bool,
    hear: Callable[[int, Any], None] | None = None,
) -> Iterator[tuple[int, Result]]:
    """Yield (job number, result) as the jobs end, in any order.

    :param function: a module-level function of (job, tell).
    :param workers: processes; with 1 everything happens in this one.
    :param single_threaded: give torch one thread per job.
    :param hear: called in this process with (job number, message) for what jobs tell.
    :raises DistilleryError: what a job raised; the other jobs are given up.
    """
    hear = hear or (lambda number, message: None)
    if workers == 1 or len(jobs) < 2:
        with single_thread() if single_threaded else nullcontext():
            for number, job in enumerate(jobs):
                yield number, function(job, lambda message, n=number: hear(n, message))
        return
    yield from _run_in_processes(function, jobs, min(workers, len(jobs)), single_threaded, hear)


def _run_in_processes(
    function: Callable[[Job, Tell], Result],
    jobs: Sequence[Job],
    workers: int,
    single_threaded: bool,
    hear: Callable[[int, Any], None],
) -> Iterator[tuple[int, Result]]:
    context = multiprocessing.get_context(START)
    messages = context.Queue()
    setup = (messages, single_threaded, os.getpid())
    with ProcessPoolExecutor(workers, context, _set_up_worker, setup) as pool:
        futures = {pool.submit(_call, function, n, job): n for n, job in enumerate(jobs)}
        waiting: set[Future[Result]] = set(futures)
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.25, return_when=FIRST_COMPLETED)
                _pass_on(messages, hear)
                for future in done:
                    yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise _killed_worker() from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def stream_jobs(
    function: Callable[[Job], Result], jobs: Iterable[Job], workers: int
) -> Iterator[Result]:
    """Yield the results of any number of jobs, in the jobs' order.

    ``jobs`` is read only a few ahead (:data:`IN_FLIGHT`) of the results that were taken.

    :param function: a module-level function of a job; it computes with one thread.
    :param workers: processes; with 1 everything happens in this one.
    :raises DistilleryError: what a job, or reading ``jobs``, raised; results before it come first.
    """
    if workers == 1:
        with single_thread():
            yield from map(function, jobs)
        return
    context = multiprocessing.get_context(START)
    setup = (None, True, os.getpid())
    with ProcessPoolExecutor(workers, context, _set_up_worker, setup) as pool:
        try:
            # All workers start now: reading jobs may start threads, and those do not survive a
            # fork.
            pool.submit(os.getpid).result()
            yield from _in_order(pool, function, jobs, IN_FLIGHT * workers)
        except BrokenProcessPool as error:
            raise _killed_worker() from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _in_order(
    pool: ProcessPoolExecutor,
    function: Callable[[Job], Result],
    jobs: Iterable[Job],
    limit: int,
) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    stream = iter(jobs)
    failure: DistilleryError | None = None
    while True:
        try:
            job = next(stream)
        except StopIteration:
            break
        except DistilleryError as error:
            # How far ahead of the results jobs are read depends on the workers: whoever needs no
            # more results than those before the fault must not meet it.
            failure = error
            break
        waiting.append(pool.submit(function, job))
        if len(waiting) == limit:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
    if failure:
        raise failure


def _killed_worker() -> DistilleryError:
    return DistilleryError(
        "a worker process was killed, most often for want of memory. Set `workers` in params.yaml "
        "to fewer and run again: what was finished is kept."
    )


def _pass_on(messages: Any, hear: Callable[[int, Any], None]) -> None:
    try:
        while True:
            hear(*messages.get_nowait())
    except queue.Empty:
        return


def _set_up_worker(messages: Any, single_threaded: bool, parent: int) -> None:
    global _messages
    _messages = messages
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if single_threaded:
        import torch

        torch.set_num_threads(1)


def _end_with(parent: int) -> None:
    # A killed stage must not leave workers behind that write beside its successor's.
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _call(function: Callable[[Job, Tell], Result], number: int, job: Job) -> Result:
    last = 0.0

    def tell(message: Any) -> None:
        nonlocal last
        # Progress is for people: ten messages a second and job are enough.
        if time.monotonic() - last > 0.1:
            last = time.monotonic()
            _messages.put((number, message))

    return function(job, tell)
