"""Jobs give the same results whatever runs them, fail loudly, and never outlive their parent."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base import stage_records
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.params import load_params
from pipeline_lib.params.schema import LocalProcesses
from pipeline_lib.shards.engine import local, make_engine
from pipeline_lib.shards.engine.local import LocalEngine, accelerators
from pipeline_lib.shards.engine.protocol import IN_FLIGHT, Report
from tests.tour import TOUR

JOBS = [3, 1, 4, 1, 5]


def square(job: int, report: Report) -> int:
    report(("squaring", job))
    return job * job


def fail_at_four(job: int, report: Report) -> int:
    if job == 4:
        raise PotstillError("job 4 cannot be done")
    return job


def process_and_threads(job: int, report: Report) -> tuple[int, int]:
    import torch

    return os.getpid(), torch.get_num_threads()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_and_messages_are_those_of_the_jobs(workers: int) -> None:
    heard: list[tuple[int, Any]] = []
    results = dict(LocalEngine(workers).run(square, JOBS, lambda number, note: heard.append((number, note))))
    assert results == {number: job * job for number, job in enumerate(JOBS)}
    assert sorted(heard) == [(n, ("squaring", job)) for n, job in enumerate(JOBS)]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_job_surfaces(workers: int) -> None:
    with pytest.raises(PotstillError, match="job 4 cannot be done"):
        list(LocalEngine(workers).run(fail_at_four, JOBS))


def test_workers_are_processes_with_one_thread_each() -> None:
    found = [result for _, result in LocalEngine(2).run(process_and_threads, [1, 2])]
    assert {threads for _, threads in found} == {1}
    assert os.getpid() not in {pid for pid, _ in found}
    here = [result for _, result in LocalEngine(1).run(process_and_threads, [1, 2])]
    assert here == [(os.getpid(), 1)] * 2
    # No job and no listener.
    assert list(LocalEngine(3).run(square, [])) == []
    assert list(LocalEngine(3).run(square, [7])) == [(0, 49)]
    # A killed worker of a stream is named.
    with pytest.raises(PotstillError, match="a worker process was killed"):
        list(LocalEngine(2).stream(die, [1, 2, 3]))


def double(job: int) -> int:
    if job == 9:
        raise PotstillError("job 9 cannot be done")
    time.sleep(max(0, 4 - job) * 0.02)
    return 2 * job


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_streams_results_keep_its_order(workers: int) -> None:
    assert list(LocalEngine(workers).stream(double, iter(range(8)))) == list(range(0, 16, 2))
    assert list(LocalEngine(workers).stream(double, [])) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stream_is_read_a_few_jobs_ahead(workers: int) -> None:
    read: list[int] = []
    jobs = (read.append(n) or 0 for n in range(1000))
    results = LocalEngine(workers).stream(double, jobs)
    for taken in range(1, 6):
        next(results)
        assert len(read) <= taken + IN_FLIGHT * workers
    results.close()
    assert len(read) < 20


def faulty_stream() -> Iterator[int]:
    yield from range(3)
    raise PotstillError("truncated")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_streams_faults_surface_in_order(workers: int) -> None:
    with pytest.raises(PotstillError, match="job 9 cannot be done"):
        list(LocalEngine(workers).stream(double, range(12)))
    found = []
    with pytest.raises(PotstillError, match="truncated"):
        found.extend(LocalEngine(workers).stream(double, faulty_stream()))
    results = LocalEngine(workers).stream(double, faulty_stream())
    assert [next(results) for _ in range(3)] == [0, 2, 4]
    results.close()


def die(job: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return job


def test_threads_are_given_back() -> None:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        jobs = LocalEngine(1).run(process_and_threads, [1, 2])
        assert next(jobs)[1][1] == 1
        jobs.close()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_workers_are_cores_or_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    params = load_params(TOUR)
    monkeypatch.setattr("pipeline_lib.base.processor.usable_cores", lambda: 3)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    monkeypatch.delenv(local.VISIBLE, raising=False)
    seven = params.model_copy(update={"workers": 7})
    assert [make_engine(p, "cpu").workers for p in (params, seven)] == [3, 7]
    # What is not to be cut into threads runs alone on a CPU.
    assert make_engine(seven, "cpu", single_threaded=False) == LocalEngine(1, False)
    assert make_engine(seven, "cuda") == LocalEngine(4, False, ("0", "1", "2", "3"))
    assert make_engine(seven, "cuda:1") == LocalEngine(1, False, (None,))
    assert make_engine(seven, "mps").workers == 1
    several = seven.model_copy(update={"engine": LocalProcesses(kind="local", per_accelerator=2)})
    assert make_engine(several, "cuda") == LocalEngine(8, False, ("0", "1", "2", "3") * 2)
    assert make_engine(several, "cuda:1") == LocalEngine(2, False, (None, None))
    # One training that is not cut into jobs gains nothing from a second process.
    assert make_engine(several, "cuda", single_threaded=False).workers == 4
    assert make_engine(several, "cpu").workers == 7
    monkeypatch.setenv(local.VISIBLE, "5,GPU-7")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert accelerators("cuda") == ("5", "GPU-7")


def see_device(job: int, report: Report) -> tuple[int, str | None]:
    time.sleep(0.2)
    return os.getpid(), os.environ.get(local.VISIBLE)


@pytest.mark.slow
def test_each_worker_of_an_accelerator_is_started_anew_and_sees_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = LocalEngine.on(("5", "7"))
    found = {result for _, result in engine.run(see_device, list(range(6)))}
    assert {device for _, device in found} == {"5", "7"}
    assert len({pid for pid, _ in found}) == 2
    # A single one computes here, where the parent may have initialised it.
    monkeypatch.delenv(local.VISIBLE, raising=False)
    alone = LocalEngine.on(("5",)).run(see_device, [0, 1])
    assert {result for _, result in alone} == {(os.getpid(), None)}
    # Several share one.  One that the jobs name themselves is not hidden from them.
    for devices, seen in ((("5",), "5"), ((None,), None)):
        found = {result for _, result in LocalEngine.on(devices, 2).run(see_device, list(range(6)))}
        assert {device for _, device in found} == {seen}
        assert len({pid for pid, _ in found}) == 2 and os.getpid() not in dict(found)


def test_what_workers_share(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: set[str] = set()
    monkeypatch.setattr(stage_records, "_accelerators", noted)
    monkeypatch.setattr(local, "used_accelerators", lambda: ["A card"])  # forked workers share it
    assert dict(LocalEngine(2).run(square, [2, 3])) == {0: 4, 1: 9} and noted == {"A card"}
    noted.clear()
    assert list(LocalEngine(2).stream(double, [5, 6])) == [10, 12] and noted == {"A card"}
    # Forked workers share what was loaded before.
    LOADED.clear()
    found = LocalEngine(2).run(see_loaded, [1, 2], preload=lambda: LOADED.append(9))
    assert [result for _, result in found] == [[9], [9]]
    assert list(LocalEngine(2).run(see_loaded, [], preload=lambda: LOADED.append(9))) == []
    assert LOADED == [9]


LOADED: list[int] = []


def see_loaded(job: int, report: Report) -> list[int]:
    return LOADED


SLEEPERS = """
import os, sys, time
from pathlib import Path
from pipeline_lib.shards.engine.local import LocalEngine

def sleep(job, report):
    (Path(sys.argv[1]) / f"pid{job}").write_text(str(os.getpid()))
    time.sleep(120)

if __name__ == "__main__":
    list(LocalEngine(2).run(sleep, [0, 1]))
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
    repository = str(Path(__file__).parents[3])
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "sleepers.py"), str(tmp_path)], env=os.environ | {"PYTHONPATH": repository}
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


def test_jobs_in_flight() -> None:
    together = threading.Barrier(3, timeout=30)
    loaded: list[bool] = []

    def meet(job: int, report: Report) -> tuple[int, int]:
        assert loaded == [True]
        together.wait()
        report(job * 2)
        return job * 10, os.getpid()

    messages: dict[int, int] = {}
    engine = LocalEngine(1)
    done = engine.run(meet, range(6), messages.__setitem__, preload=lambda: loaded.append(True), in_flight=3)
    assert dict(done) == {number: (number * 10, os.getpid()) for number in range(6)}
    assert messages == {number: number * 2 for number in range(6)}
    # After a failure no more jobs are started.
    started: list[int] = []

    def fail(job: int, _: Report) -> None:
        started.append(job)
        if job == 3:
            raise PotstillError("job 3 failed")
        time.sleep(0.01)

    with pytest.raises(PotstillError, match="job 3 failed"):
        list(LocalEngine(1).run(fail, range(1000), in_flight=2))
    assert len(started) < 1000
