"""The local engine: runs jobs in this process, or in worker processes of this machine.

On a CPU every job computes with one thread, in as many processes as there are cores.  Small matrix products gain little
from a second thread (two processes trained students 1.4 times as fast as one with two threads), and a job's bytes then
depend on neither the number of workers nor the number of cores.  On accelerators there is one worker per device, or as
many as asked for; with a single worker the jobs run in this process, and those of a pass a few at a time, in threads.
"""

import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline_lib.base import stage_records
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.processor import single_thread, use_one_thread, used_accelerators
from pipeline_lib.shards.engine.protocol import IN_FLIGHT, Job, OnProgress, Report, Result, throttled

Done = tuple[Result, list[str]]
"""A job's result, and the accelerators that its worker has used."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
_messages: Any = None


def accelerators(device: str) -> tuple[str | None, ...]:
    """Return the devices that ``device`` stands for: for ``cuda``, all that are visible.

    Each is named as ``CUDA_VISIBLE_DEVICES`` names it, so that a worker can be shown only its own.
    A device that the jobs name themselves, such as ``cuda:1``, is None: its workers see all.
    """
    if device != "cuda":
        return (None,)
    import torch

    count = torch.cuda.device_count()
    visible = os.environ.get(VISIBLE)
    return tuple(visible.split(",") if visible else map(str, range(count)))[:count]


@dataclass(frozen=True)
class LocalEngine:
    """Worker processes of this machine, with one thread per job if ``single_threaded``; 1: this process itself.

    :ivar devices: the workers' accelerators, see :func:`accelerators`; none: jobs run on the CPU.
    """

    workers: int
    single_threaded: bool = True
    devices: tuple[str | None, ...] = ()

    @classmethod
    def on(cls, devices: tuple[str | None, ...], per_device: int = 1) -> "LocalEngine":
        """Return the engine with ``per_device`` workers on each accelerator."""
        workers = devices * per_device
        return cls(max(1, len(workers)), single_threaded=False, devices=workers)

    def run(
        self,
        function: Callable[[Job, Report], Result],
        jobs: Sequence[Job],
        on_progress: OnProgress | None = None,
        preload: Callable[[], None] | None = None,
        in_flight: int = 1,
    ) -> Iterator[tuple[int, Result]]:
        """Run jobs in any order; see :meth:`~pipeline_lib.shards.engine.protocol.Engine.run`."""
        on_progress = on_progress or (lambda number, message: None)
        if self.workers == 1 or len(jobs) < 2:
            with self._threads():
                if in_flight > 1 and len(jobs) > 1:
                    if preload:
                        preload()
                    yield from _in_threads(function, jobs, on_progress, in_flight)
                    return
                for number, job in enumerate(jobs):
                    yield number, function(job, lambda message, n=number: on_progress(n, message))
            return
        if preload and self._start == "fork":
            with single_thread():
                preload()
        yield from self._run_in_processes(function, jobs, on_progress)

    def stream(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        """Run jobs in order; see :meth:`~pipeline_lib.shards.engine.protocol.Engine.stream`."""
        if self.workers == 1:
            with self._threads():
                yield from map(function, jobs)
            return
        with self._pool(self.workers, None) as pool:
            try:
                # All workers start now: reading jobs may start threads, and those do not survive a fork.
                pool.submit(os.getpid).result()
                yield from _in_order(pool, function, jobs, IN_FLIGHT * self.workers)
            except BrokenProcessPool as error:
                raise _killed_worker() from error
            except BaseException as error:
                _stop(pool, at_once=isinstance(error, KeyboardInterrupt))
                raise

    @property
    def _start(self) -> str:
        # A forked worker inherits all imports and models of its parent: nothing is loaded twice. Forking is safe as
        # long as the parent has computed with one thread only, and on a CPU: a process that has initialised CUDA must
        # not be forked.
        return "fork" if sys.platform == "linux" and not self.devices else "spawn"

    def _threads(self) -> AbstractContextManager[None]:
        return single_thread() if self.single_threaded else nullcontext()

    def _pool(self, workers: int, messages: Any) -> ProcessPoolExecutor:
        context = multiprocessing.get_context(self._start)
        devices = context.Queue()
        for device in self.devices:
            devices.put(device)
        setup = (messages, devices if self.devices else None, self.single_threaded, os.getpid())
        return ProcessPoolExecutor(workers, context, _set_up_worker, setup)

    def _run_in_processes(
        self, function: Callable[[Job, Report], Result], jobs: Sequence[Job], on_progress: OnProgress
    ) -> Iterator[tuple[int, Result]]:
        messages = multiprocessing.get_context(self._start).Queue()
        with self._pool(min(self.workers, len(jobs)), messages) as pool:
            futures = {pool.submit(_call, function, n, job): n for n, job in enumerate(jobs)}
            waiting: set[Future[Done]] = set(futures)
            try:
                while waiting:
                    done, waiting = wait(waiting, timeout=0.25, return_when=FIRST_COMPLETED)
                    _pass_on(messages, on_progress)
                    for future in done:
                        yield futures[future], _result(future)
            except BrokenProcessPool as error:
                raise _killed_worker() from error
            except BaseException as error:
                _stop(pool, at_once=isinstance(error, KeyboardInterrupt))
                raise
        # A worker sends its last messages before it ends, and all have ended.
        _pass_on(messages, on_progress)


def _in_threads(
    function: Callable[[Job, Report], Result], jobs: Sequence[Job], on_progress: OnProgress, in_flight: int
) -> Iterator[tuple[int, Result]]:
    """Run a few jobs at a time in threads of this process; after a failure, start no more."""
    pool = ThreadPoolExecutor(in_flight)
    try:
        futures = {pool.submit(function, job, partial(on_progress, number)): number for number, job in enumerate(jobs)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _stop(pool: ProcessPoolExecutor, at_once: bool) -> None:
    """Start no more jobs, and end those that run ``at_once``, as on Ctrl-C.

    That loses nothing: what they store appears as a whole or not.
    """
    pool.shutdown(wait=False, cancel_futures=True)
    if at_once:
        workers = multiprocessing.active_children()
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.join()


def _in_order(
    pool: ProcessPoolExecutor, function: Callable[[Job], Result], jobs: Iterable[Job], limit: int
) -> Iterator[Result]:
    waiting: deque[Future[Done]] = deque()
    stream = iter(jobs)
    failure: PotstillError | None = None
    while True:
        try:
            job = next(stream)
        except StopIteration:
            break
        except PotstillError as error:
            # How far jobs are read ahead of the results depends on the workers: a caller that needs
            # only the results before the fault must not see it.
            failure = error
            break
        waiting.append(pool.submit(_apply, function, job))
        if len(waiting) == limit:
            yield _result(waiting.popleft())
    while waiting:
        yield _result(waiting.popleft())
    if failure:
        raise failure


def _killed_worker() -> PotstillError:
    return PotstillError(
        "a worker process was killed, most likely because memory ran out. Lower `workers`, "
        "or a training's `batch_size`, in params.yaml and run again: what was finished is kept."
    )


def _pass_on(messages: Any, on_progress: OnProgress) -> None:
    try:
        while True:
            on_progress(*messages.get_nowait())
    except queue.Empty:
        return


def _set_up_worker(messages: Any, devices: Any, single_threaded: bool, parent: int) -> None:
    global _messages
    _messages = messages
    # Ctrl-C reaches all processes of a terminal: the parent ends its workers.  What it does on
    # SIGTERM, a forked worker must not do: the pool ends its workers by it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if devices is not None and (device := devices.get()):
        # Before torch reads it: this worker sees only its own device.
        os.environ[VISIBLE] = device
    if single_threaded:
        use_one_thread()


def _end_with(parent: int) -> None:
    # A killed stage must not leave workers behind that write while its successor's do.
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _call(function: Callable[[Job, Report], Result], number: int, job: Job) -> Done:
    result = function(job, throttled(lambda message: _messages.put((number, message)), 0.1))
    return result, used_accelerators()


def _apply(function: Callable[[Job], Result], job: Job) -> Done:
    return function(job), used_accelerators()


def _result(future: Future[Done]) -> Result:
    result, used = future.result()
    stage_records.used_in_worker(used)
    return result
