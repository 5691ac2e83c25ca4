"""The Ray engine: actors of a Ray cluster run the jobs, on one machine or on many.

Only Ray's actors are used.  Jobs read and write shards as in any engine: all nodes need the
project's folder and the state folder (``POTSTILL_HOME``) at the same paths, on a shared file
system.  A job whose node or worker dies is run again by another worker.
"""

import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pipeline_lib.base import stage_records
from pipeline_lib.base.errors import PotstillError, install_extra, reason_of
from pipeline_lib.base.layout import state_folder
from pipeline_lib.base.processor import usable_cores, used_accelerators
from pipeline_lib.shards.engine.heads import check_head, end_without, no_cluster, watch
from pipeline_lib.shards.engine.protocol import IN_FLIGHT, Job, OnProgress, Report, Result, throttled

try:
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as error:
    raise PotstillError(
        f"engine.kind: ray is not installed. Run `{install_extra('ray')}`, or set "
        "`engine: {kind: local}` in params.yaml."
    ) from error

MAX_ATTEMPTS = 4
"""How often a job is started if its workers die."""


class RayEngine:
    """Actors of a Ray cluster; see :class:`~pipeline_lib.shards.engine.protocol.Engine`.

    :param address: of the cluster (``host:port``); None starts one on this machine.
    :param workers: how many actors; None: one per core, or per GPU, of the cluster.
    :param device: where the jobs compute; on ``cuda`` an actor has a GPU to itself.
    """

    def __init__(self, address: str | None, workers: int | None, device: str) -> None:
        _connect(address, workers)
        self._on_gpus = device.startswith("cuda")
        available = int(ray.cluster_resources().get("GPU" if self._on_gpus else "CPU", 1))
        self.workers = max(1, min(available, workers or available))

    def run(
        self,
        function: Callable[[Job, Report], Result],
        jobs: Sequence[Job],
        on_progress: OnProgress | None = None,
        preload: Callable[[], None] | None = None,
        in_flight: int = 1,
    ) -> Iterator[tuple[int, Result]]:
        """Run jobs in any order; see :meth:`~pipeline_lib.shards.engine.protocol.Engine.run`."""
        if not jobs:
            return
        # On the node of this process, since another node may die.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        mailbox = _Mailbox.options(num_cpus=0, scheduling_strategy=here).remote()
        left = deque(enumerate(jobs))

        def pass_on() -> None:
            for message in ray.get(mailbox.take.remote()):
                if on_progress:
                    on_progress(*message)

        for number, result in self._schedule(
            lambda worker, number, job: worker.compute.remote(function, number, job, mailbox),
            lambda: left.popleft() if left else None,
            len(jobs),
            pass_on,
        ):
            if isinstance(result, _Failed):
                raise result.error
            yield number, result

    def stream(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        """Run jobs in order; see :meth:`~pipeline_lib.shards.engine.protocol.Engine.stream`."""
        source, finished = iter(jobs), {}
        submitted = taken = 0
        failure: PotstillError | None = None

        def next_job() -> tuple[int, Job] | None:
            nonlocal submitted, failure
            if failure or submitted - taken >= IN_FLIGHT * self.workers:
                return None
            try:
                job = next(source)
            except StopIteration:
                return None
            except PotstillError as error:
                failure = error
                return None
            submitted += 1
            return submitted - 1, job

        for number, result in self._schedule(
            lambda worker, _, job: worker.apply.remote(function, job), next_job, self.workers, lambda: None
        ):
            finished[number] = result
            while taken in finished:
                result = finished.pop(taken)
                if isinstance(result, _Failed):
                    raise result.error
                yield result
                taken += 1
        if failure:
            raise failure

    def _schedule(
        self,
        submit: Callable[[Any, int, Any], Any],
        next_job: Callable[[], tuple[int, Any] | None],
        jobs: int,
        poll: Callable[[], None],
    ) -> Iterator[tuple[int, Any]]:
        """Yield (number, result or failure) as jobs end; ``next_job`` gives None if none is ready.

        A worker has jobs once it answers: where a node has died, or others compute, the cluster may
        have no room for it.
        """
        idle: list[Any] = []
        workers = [_POOL.take(self._place) or self._start() for _ in range(min(self.workers, jobs))]
        starting = {worker.ping.remote(): worker for worker in workers}
        running: dict[Any, tuple[Any, tuple[int, Any]]] = {}
        again: deque[tuple[int, Any]] = deque()
        attempts: Counter[int] = Counter()
        failures = 0

        def start() -> None:
            worker = self._start()
            starting[worker.ping.remote()] = worker

        try:
            while True:
                while idle and (job := again.popleft() if again else next_job()):
                    worker = idle.pop()
                    running[submit(worker, *job)] = worker, job
                if idle and not running:
                    return
                done, _ = ray.wait([*running, *starting], timeout=0.25)
                poll()
                for reference in done:
                    if worker := starting.pop(reference, None):
                        try:
                            ray.get(reference)
                            idle.append(worker)
                        except RayError as error:
                            failures += 1
                            if failures >= MAX_ATTEMPTS * len(workers):
                                raise _lost(error) from error
                            start()
                        continue
                    worker, job = running.pop(reference)
                    try:
                        result = _get(reference)
                    except RayError as error:
                        attempts[job[0]] += 1
                        if attempts[job[0]] >= MAX_ATTEMPTS:
                            raise _lost(error) from error
                        again.append(job)
                        if not (idle or running or starting):
                            start()
                        continue
                    idle.append(worker)
                    yield job[0], result
        finally:
            _POOL.idle += [*idle, *starting.values()]
            for worker, _ in running.values():
                with suppress(RayError):
                    ray.kill(worker)

    @property
    def _place(self) -> "Place":
        return os.getcwd(), str(state_folder().resolve()), self._on_gpus

    def _start(self) -> Any:
        folder, state, on_gpu = self._place
        wants = {"num_gpus": 1} if on_gpu else {"num_cpus": 1}
        return _Worker.options(**wants, scheduling_strategy="SPREAD").remote(folder, state)


Place = tuple[str, str, bool]
"""Where a worker runs: the project's folder, the state folder, whether on a GPU."""


class _Pool:
    """Workers of one place without a job, kept for the next run: starting one takes seconds."""

    def __init__(self) -> None:
        self.place: Place | None = None
        self.idle: list[Any] = []

    def take(self, location: Place) -> Any | None:
        """Return a worker, which may have died since, or None; those of another are killed."""
        if location != self.place:
            for worker in self.idle:
                # They hold cores that the new ones need.
                ray.kill(worker)
            self.place, self.idle = location, []
        return self.idle.pop() if self.idle else None


_POOL = _Pool()


class _Failed(NamedTuple):
    """What a job raised."""

    error: Exception


def _get(reference: Any) -> Any:
    """Return a job's result, or what it raised; raise only if its worker died."""
    try:
        result, used = ray.get(reference)
        stage_records.used_in_worker(used)
        return result
    except RayActorError:
        raise
    except RayTaskError as error:
        return _Failed(error.cause if isinstance(error.cause, Exception) else error)


def _lost(error: Exception) -> PotstillError:
    return PotstillError(
        f"the workers of a job died {MAX_ATTEMPTS} times, most likely because memory ran out ({reason_of(error)}). "
        "Lower `workers` in params.yaml and run again: what was finished is kept."
    )


def _connect(address: str | None, workers: int | None) -> None:
    if ray.is_initialized():
        return
    # The workers import what this process can import; nothing is installed for them.
    paths = [str(Path(path).resolve()) for path in sys.path]
    environment = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    # Once a job imports torch, it computes with one thread.
    environment |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    common = {"runtime_env": {"env_vars": environment}, "log_to_driver": False, "logging_level": "error"}
    try:
        if address is None:
            cores = workers or usable_cores()
            ray.init(address="local", num_cpus=cores, include_dashboard=False, **common)
        else:
            head = check_head(address)
            ray.init(address=address, **common)
            if head is not None:
                watch(head, end_without)
    except (RayError, ConnectionError, RuntimeError, ValueError, GetTimeoutError) as error:
        raise no_cluster(address, reason_of(error)) from error


@ray.remote
class _Worker:
    """Computes jobs, one after the other, with one thread on a CPU; it returns the accelerators used so far, too."""

    def __init__(self, folder: str, state: str) -> None:
        os.chdir(folder)
        os.environ["POTSTILL_HOME"] = state

    def ping(self) -> None:
        """Answer; a dead worker does not."""

    def apply(self, function: Callable[[Any], Any], job: Any) -> tuple[Any, list[str]]:
        return function(job), used_accelerators()

    def compute(
        self, function: Callable[[Any, Report], Any], number: int, job: Any, mailbox: Any
    ) -> tuple[Any, list[str]]:
        report = throttled(lambda m: mailbox.put.remote((number, m)), 0.5)
        return function(job, report), used_accelerators()


@ray.remote
class _Mailbox:
    """Holds messages until they are taken."""

    def __init__(self) -> None:
        self._messages: list[Any] = []

    def put(self, message: Any) -> None:
        self._messages.append(message)

    def take(self) -> list[Any]:
        taken, self._messages = self._messages, []
        return taken
