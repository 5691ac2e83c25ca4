"""The pipeline on a Ray cluster of two nodes, also if one is killed: the same to the byte."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_lib.shards.engine import CLUSTER

from .conftest import Finished
from .workspace import METHODS, TASK, Workspace

# Without Ray, this import skips the tests.
from tests.kit.clusters import Cluster, two_nodes, used_cores  # isort: skip

pytestmark = pytest.mark.slow
STAGE, FOLDER = "train", f"data/students/{TASK}"
"""A stage that has a pass, which numbers words, and trainings computed; the folder it writes."""
TIMED = ("stages", "speed", "exports", "report")
"""Folders of data/ with times, or what was chosen by them."""


def test_a_stage_through_ray_writes_the_same_bytes(finished: Finished, tmp_path: Path) -> None:
    other = finished.workspace.copy(tmp_path / "elsewhere" / "deeper")
    other.forget(".potstill/students", ".potstill/store/encoded", FOLDER)
    with two_nodes() as cluster:
        settings = {"engine": {"kind": "ray", "address": cluster.address}, "workers": 2}
        other.params(lambda params: params.update(settings))
        other.stage(STAGE).sound()
    assert other.digests(FOLDER) == finished.workspace.digests(FOLDER)


def test_the_pipeline_outlives_one_of_two_nodes(
    finished: Finished, new_workspace: Callable[[Path], Workspace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = new_workspace(tmp_path / "elsewhere" / "deeper")
    new.params(lambda params: params.update(workers=3))
    with two_nodes() as cluster:
        # As a job script does, so params.yaml's engine is another.
        monkeypatch.setenv(CLUSTER, cluster.address)
        for name, item in new.stages():
            if name == STAGE:
                _train_and_kill_a_node(new, cluster)
            else:
                new.stage(name, *item).sound()
        assert len(cluster.list_all_nodes()) == 1
    written = {
        name: digest
        for name, digest in finished.workspace.digests("data").items()
        if name.partition("/")[0] not in TIMED
    }
    there = new.digests("data")
    assert {name: there.get(name) for name in written} == written
    scores = "data/report/results.md"
    assert (new / scores).read_bytes() == (finished.workspace / scores).read_bytes()


def _train_and_kill_a_node(workspace: Workspace, cluster: Cluster) -> None:
    [victim] = cluster.worker_nodes
    with workspace.started(STAGE) as stage:
        end, students = time.monotonic() + 300, 2 * len(METHODS)
        while not workspace.trained() or not used_cores(cluster, 1):
            assert time.monotonic() < end and len(workspace.trained()) < students
            time.sleep(0.02)
        before = len(workspace.trained())
        cluster.remove_node(victim, allow_graceful=False)
        stage.wait().sound()
    assert before < len(workspace.trained()) == students
