"""Another workspace, with Ray for an engine: all that is computed is the same to the byte."""

from collections.abc import Callable
from pathlib import Path

from .conftest import Finished
from .test_full_run import STAGES
from .workspace import TASK, Workspace

# Without Ray, this import skips the tests.
from tests.clusters import two_nodes  # isort: skip


def test_another_workspace_through_ray_writes_the_same_lock_file(
    finished: Finished, new_workspace: Callable[[Path], Workspace], tmp_path: Path
) -> None:
    other = new_workspace(tmp_path / "elsewhere" / "deeper")
    with two_nodes() as cluster:
        settings = {"engine": {"kind": "ray", "address": cluster.address}, "workers": 2}
        other.params(lambda params: params.update(settings))
        run = other.dvc("repro", "report").sound()
    timed = f"measure_speed@{TASK}"
    assert set(run.stages) == STAGES - {timed}
    expected = finished.workspace.lock()
    expected.pop(timed)
    assert other.lock() == expected
