"""The Ray engine: the same bytes as the local one, on two nodes of which one is killed."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.params import load_params
from pipeline_lib.shards.engine import CLUSTER, make_engine
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import Piece, run_pieces
from pipeline_lib.shards.engine.protocol import Report
from pipeline_lib.shards.shard_sets import ShardSet

from .test_passes import LengthPass, run_pass, texts  # noqa: F401  a fixture

# Without Ray, this import skips the tests.
from tests.kit.clusters import Cluster, ray, two_nodes  # isort: skip
from pipeline_lib.shards.engine.ray import RayEngine
from tests.tour import TOUR

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with two_nodes() as nodes:
        yield nodes


def square(job: int, report: Report) -> int:
    report(("squaring", job))
    if job == 13:
        raise PotstillError("job 13 cannot be done")
    return job * job


def double(job: int) -> int:
    if job == 9:
        raise PotstillError("job 9 cannot be done")
    time.sleep(max(0, 4 - job) * 0.05)  # later jobs end sooner
    return 2 * job


def test_jobs_and_streams_are_those_of_the_local_engine(cluster: Cluster) -> None:
    params = load_params(TOUR)
    settings = {"kind": "ray", "address": cluster.address}
    params = params.model_validate(params.model_dump() | {"engine": settings})
    engine = make_engine(params, "cpu")
    assert isinstance(engine, RayEngine) and engine.workers == 3
    heard: list[tuple[int, Any]] = []
    found = dict(engine.run(square, [3, 1, 4], lambda *message: heard.append(message)))
    assert found == {0: 9, 1: 1, 2: 16}
    assert set(heard) <= {(0, ("squaring", 3)), (1, ("squaring", 1)), (2, ("squaring", 4))}
    assert list(engine.run(square, [])) == []
    with pytest.raises(PotstillError, match="job 13 cannot be done"):
        list(engine.run(square, [13]))
    results = engine.stream(double, range(12))
    assert [next(results) for _ in range(9)] == list(range(0, 18, 2))
    with pytest.raises(PotstillError, match="job 9 cannot be done"):
        next(results)
    # What is not to be cut into threads runs here.
    assert make_engine(params, "cpu", single_threaded=False) == LocalEngine(1, False)


def test_a_job_scripts_cluster_goes_before_the_engine_of_params(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CLUSTER, cluster.address)
    params = load_params(TOUR)
    assert params.engine.kind == "local"
    assert isinstance(make_engine(params, "cpu"), RayEngine)
    assert make_engine(params, "cpu", single_threaded=False) == LocalEngine(1, False)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_pass_has_the_same_bytes(
    cluster: Cluster,
    texts: ShardSet,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
) -> None:
    run_pass(LengthPass(), texts, tmp_path / "local", LocalEngine(1))
    monkeypatch.setenv("POTSTILL_HOME", str(tmp_path / "another"))
    engine = RayEngine(cluster.address, workers, "cpu")
    _, report = run_pass(LengthPass(), texts, tmp_path / "ray", engine)
    assert (engine.workers, report.computed) == (workers, 4)
    assert sha256_folder(tmp_path / "ray") == sha256_folder(tmp_path / "local")


@dataclass(frozen=True)
class SlowPass(LengthPass):
    """Takes half a second, and says on which node it was."""

    folder: str = ""

    def compute(self, rows: pa.Table) -> pa.Table:
        node = ray.get_runtime_context().get_node_id()
        (Path(self.folder) / f"{node}.{os.getpid()}.{time.monotonic_ns()}").touch()
        time.sleep(0.5)
        return super().compute(rows)


def test_a_killed_node_loses_nothing(cluster: Cluster, tmp_path: Path, store_home: Path) -> None:
    victim = cluster.add_node(num_cpus=2)
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    pieces = [Piece(f"{n:064x}", pa.table({"text": ["a" * n]}), n) for n in range(12)]
    killed: list[float] = []

    def on_done(_: Any) -> None:
        at_work = {path.name.split(".")[0] for path in nodes.iterdir()}
        if not killed and victim.node_id in at_work:
            cluster.remove_node(victim, allow_graceful=False)
            killed.append(time.monotonic())

    engine = RayEngine(cluster.address, 5, "cpu")
    assert engine.workers == 5
    answers, report = run_pieces(SlowPass(folder=str(nodes)), pieces, engine, on_done)
    assert killed, "the node that was to be killed had no work"
    assert report.computed == 12 and [answer.piece.note for answer in answers] == list(range(12))
    found = [next(a.tables(SlowPass(folder=str(nodes))))["length"][0].as_py() for a in answers]
    assert found == list(range(12))


def test_workers_for_which_there_is_no_room_are_not_waited_for(cluster: Cluster) -> None:
    engine = RayEngine(cluster.address, None, "cpu")
    # As if two nodes had just died, which the cluster does not know yet.
    engine._workers = 7
    assert dict(engine.run(square, [1, 2, 3, 4, 5, 6, 7])) == {n: (n + 1) ** 2 for n in range(7)}
    assert list(engine.stream(double, [5, 6, 7])) == [10, 12, 14]


def test_a_cluster_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def refuse(**_: Any) -> None:
        raise ConnectionError("Could not find any running Ray instance")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(PotstillError, match=r"engine.address: 10.0.0.1:6379: no Ray cluster"):
        RayEngine("10.0.0.1:6379", None, "cpu")
