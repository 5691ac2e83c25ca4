"""What the tests of chaos share: the undisturbed run of tests/pipeline, and what is drawn."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.pipeline.conftest import Finished, finished, new_workspace, once, server, shared, shims, workspace  # noqa: F401  fixtures
from tests.pipeline.workspace import Workspace

from .disturbing import TIMINGS, kill_all_in

ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "2"))


@pytest.fixture
def rounds() -> range:
    """Return the rounds of disturbance."""
    return range(ROUNDS)


@pytest.fixture
def drawn(request: pytest.FixtureRequest) -> random.Random:
    """Return the test's generator, which CHAOS_SEED and the test's name determine."""
    return random.Random(f"{os.environ.get('CHAOS_SEED', '0')} {request.node.name}")


@pytest.fixture
def fresh(
    new_workspace: Callable[[Path], Workspace],  # noqa: F811
    finished: Finished,  # noqa: F811
    tmp_path: Path,
) -> Iterator[Callable[[str], Workspace]]:
    """Return the function that makes a workspace of a name in which only speeds are known.

    Speeds are the one result that differs between undisturbed runs, and the report shows them.
    They are found by the digests of the models, so that what disturbs these shows.
    """
    made = []

    def make(name: str) -> Workspace:
        made.append(new_workspace(tmp_path / name))
        finished.workspace.lend(TIMINGS, made[-1])
        return made[-1]

    yield make
    # A test that fails leaves stages behind.
    for one in made:
        kill_all_in(one.folder)
