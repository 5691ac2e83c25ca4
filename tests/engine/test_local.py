"""Jobs give the same results whatever runs them, fail loudly, and never outlive their parent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.engine import local as engine
from pipeline_lib.engine.local import IN_FLIGHT, Tell, run_jobs, stream_jobs, worker_count

JOBS = [3, 1, 4, 1, 5]


def square(job: int, tell: Tell) -> int:
    tell(("squaring", job))
    return job * job


def fail_at_four(job: int, tell: Tell) -> int:
    if job == 4:
        raise DistilleryError("job 4 cannot be done")
    return job


def process_and_threads(job: int, tell: Tell) -> tuple[int, int]:
    import torch

    return os.getpid(), torch.get_num_threads()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_and_messages_are_those_of_the_jobs(workers: int) -> None:
    heard: list[tuple[int, Any]] = []
    results = dict(
        run_jobs(square, JOBS, workers, False, lambda number, note: heard.append((number, note)))
    )
    assert results == {number: job * job for number, job in enumerate(JOBS)}
    # Messages are for people: those of jobs still in the pipe at the end may be lost.
    assert heard and set(heard) <= {(n, ("squaring", job)) for n, job in enumerate(JOBS)}
    if workers == 1:
        assert len(heard) == len(JOBS)


def test_no_job_and_no_listener() -> None:
    assert list(run_jobs(square, [], 3, False)) == []
    assert list(run_jobs(square, [7], 3, False)) == [(0, 49)]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_job_surfaces(workers: int) -> None:
    with pytest.raises(DistilleryError, match="job 4 cannot be done"):
        list(run_jobs(fail_at_four, JOBS, workers, False))


def test_workers_are_processes_with_one_thread_each() -> None:
    found = [result for _, result in run_jobs(process_and_threads, [1, 2], 2, True)]
    assert {threads for _, threads in found} == {1}
    assert os.getpid() not in {pid for pid, _ in found}
    here = [result for _, result in run_jobs(process_and_threads, [1, 2], 1, True)]
    assert here == [(os.getpid(), 1)] * 2


def double(job: int) -> int:
    if job == 9:
        raise DistilleryError("job 9 cannot be done")
    # Later jobs end sooner.
    time.sleep(max(0, 4 - job) * 0.02)
    return 2 * job


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_streams_results_keep_its_order(workers: int) -> None:
    assert list(stream_jobs(double, iter(range(8)), workers)) == list(range(0, 16, 2))
    assert list(stream_jobs(double, [], workers)) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stream_is_read_a_few_jobs_ahead(workers: int) -> None:
    read: list[int] = []
    jobs = (read.append(n) or 0 for n in range(1000))
    results = stream_jobs(double, jobs, workers)
    for taken in range(1, 6):
        next(results)
        assert len(read) <= taken + IN_FLIGHT * workers
    results.close()
    assert len(read) < 20


def faulty_stream() -> Iterator[int]:
    yield from range(3)
    raise DistilleryError("torn")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_streams_faults_surface_in_order(workers: int) -> None:
    with pytest.raises(DistilleryError, match="job 9 cannot be done"):
        list(stream_jobs(double, range(12), workers))
    found = []
    with pytest.raises(DistilleryError, match="torn"):
        found.extend(stream_jobs(double, faulty_stream(), workers))
    results = stream_jobs(double, faulty_stream(), workers)
    assert [next(results) for _ in range(3)] == [0, 2, 4]
    results.close()


def die(job: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return job


def test_a_killed_worker_of_a_stream_is_named() -> None:
    with pytest.raises(DistilleryError, match="a worker process was killed"):
        list(stream_jobs(die, [1, 2, 3], 2))


def test_threads_are_given_back() -> None:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        jobs = run_jobs(process_and_threads, [1, 2], 1, True)
        assert next(jobs)[1][1] == 1
        jobs.close()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_worker_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert worker_count("cpu") == 3
    assert worker_count("cuda") == 1
    assert worker_count("cpu", 7) == 7
    assert worker_count("cuda", 7) == worker_count("cuda:1", 7) == 1


SLEEPERS = """
import os, sys, time
from pathlib import Path
from pipeline_lib.engine.local import run_jobs

def sleep(job, tell):
    (Path(sys.argv[1]) / f"pid{job}").write_text(str(os.getpid()))
    time.sleep(120)

if __name__ == "__main__":
    list(run_jobs(sleep, [0, 1], 2, False))
"""


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_for(condition: Any, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    (tmp_path / "sleepers.py").write_text(SLEEPERS)
    repository = str(Path(__file__).parents[2])
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "sleepers.py"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": repository},
    )
    files = [tmp_path / "pid0", tmp_path / "pid1"]
    pids: list[int] = []
    try:
        assert wait_for(lambda: all(f.exists() and f.read_text() for f in files), 30)
        pids = [int(file.read_text()) for file in files]
        assert len(set(pids)) == 2 and all(map(is_running, pids))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert wait_for(lambda: not any(map(is_running, pids)), 10)
    finally:
        parent.kill()
        for pid in filter(is_running, pids):
            os.kill(pid, signal.SIGKILL)
