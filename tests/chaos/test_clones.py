"""Clones that run at once on one store, and a run whose engine changes in the middle."""

import random
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Finished
from tests.pipeline.workspace import Workspace

from .disturbing import assert_same, computed, killed_repro, repro

pytestmark = pytest.mark.slow


def test_clones_share_a_store(finished: Finished, fresh: Callable[[str], Workspace], tmp_path: Path) -> None:
    """Two run at once, one through a link to the store, and a third finds everything.

    What both are at in the same moment is computed twice: between them they computed at least what
    one alone does, and at most twice that.
    """
    one, two, three = (fresh(name) for name in ("one", "two", "three"))
    (one / ".potstill").rename(tmp_path / ".potstill")
    for other in (two, three):
        other.forget(".potstill")
    (two / ".potstill").symlink_to(tmp_path / ".potstill")
    with ThreadPoolExecutor() as threads:
        for run in threads.map(repro, (one, two)):
            run.sound()
    alone = computed(finished.workspace)
    for kind, amount in alone.items():
        both = computed(one)[kind] + computed(two)[kind]
        assert amount <= both <= 2 * amount
    repro(three).sound()
    assert computed(three) == dict.fromkeys(alone, 0)
    for clone in (one, two, three):
        assert_same(clone, finished.workspace)
    assert not (one / ".potstill").exists() and not (three / ".potstill").exists()
    assert not list((tmp_path / ".potstill").rglob("quarantine"))


def test_workers_change_in_the_middle(
    finished: Finished, fresh: Callable[[str], Workspace], drawn: random.Random, rounds: range
) -> None:
    """Each round has one worker or two, and is killed; the last one has as many as were drawn."""
    workspace = fresh("workspace")
    for number in rounds:
        workspace.params(_workers(1 + number % 2))
        killed = killed_repro(workspace, drawn)
        assert killed.status in (0, -signal.SIGKILL)
    workspace.params(_workers(drawn.choice([1, 2])))
    repro(workspace).sound()
    assert_same(workspace, finished.workspace)


def _workers(number: int) -> Callable[[Any], None]:
    return lambda params: params.update(workers=number)


def test_the_engine_changes_in_the_middle(
    finished: Finished, fresh: Callable[[str], Workspace], drawn: random.Random
) -> None:
    """The local engine is killed, three times so that some stages are done, and Ray goes on."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'potstill[ray]'")
    from tests.kit.clusters import two_nodes

    workspace = fresh("workspace")
    for _ in range(3):
        killed_repro(workspace, drawn)
    with two_nodes() as cluster:
        engine = {"engine": {"kind": "ray", "address": cluster.address}, "workers": 2}
        workspace.params(lambda params: params.update(engine))
        workspace.run_stages()
    workspace.params(lambda params: params.update(engine={"kind": "local"}, workers=1))
    repro(workspace).sound()
    assert_same(workspace, finished.workspace)
