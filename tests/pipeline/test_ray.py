"""Stages that an engine computes, with Ray for an engine: all is the same to the byte."""

from pathlib import Path

from .conftest import Finished
from .workspace import TASK

# Without Ray, this import skips the tests.
from tests.clusters import two_nodes  # isort: skip

STAGES = {"precompute": "outputs", "train": "students"}
"""A stage of passes and one of trainings, and the folders that they write."""


def test_stages_through_ray_write_the_same_bytes(finished: Finished, tmp_path: Path) -> None:
    other = finished.workspace.copy(tmp_path / "elsewhere" / "deeper")
    folders = [f"data/{name}/{TASK}" for name in STAGES.values()]
    other.forget(".distillery", *folders)
    with two_nodes() as cluster:
        settings = {"engine": {"kind": "ray", "address": cluster.address}, "workers": 2}
        other.params(lambda params: params.update(settings))
        for stage in STAGES:
            other.stage(stage).sound()
    for folder in folders:
        assert other.digests(folder) == finished.workspace.digests(folder)
