"""A stage that an engine computes, with Ray for an engine: all is the same to the byte."""

from pathlib import Path

import pytest

from .conftest import Finished
from .workspace import TASK

# Without Ray, this import skips the tests.
from tests.clusters import two_nodes  # isort: skip

pytestmark = pytest.mark.slow
STAGE, FOLDER = "train", f"data/students/{TASK}"
"""A stage that has a pass, which numbers words, and trainings computed; the folder it writes."""


def test_a_stage_through_ray_writes_the_same_bytes(finished: Finished, tmp_path: Path) -> None:
    other = finished.workspace.copy(tmp_path / "elsewhere" / "deeper")
    other.forget(".potstill/students", ".potstill/store/encoded", FOLDER)
    with two_nodes() as cluster:
        settings = {"engine": {"kind": "ray", "address": cluster.address}, "workers": 2}
        other.params(lambda params: params.update(settings))
        other.stage(STAGE).sound()
    assert other.digests(FOLDER) == finished.workspace.digests(FOLDER)
