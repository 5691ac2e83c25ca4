"""Bits that flip between kills, in the store and in data/: named, and computed again."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline.conftest import Finished
from tests.pipeline.workspace import Workspace

from .disturbing import HOLD_TIMES, TIMINGS, assert_same, killed_repro, repro

pytestmark = pytest.mark.slow

REMEDY = re.compile(r"Delete ([^\s,]+?)\.? ")
"""What an error says to delete: the user would, and run again."""
SPARED = (str(TIMINGS), "data/input/", *(f"data/{name}" for name in HOLD_TIMES))
"""Files that cannot be computed again with the same bytes."""


def test_flips_between_kills(
    finished: Finished, fresh: Callable[[str], Workspace], drawn: random.Random, rounds: range
) -> None:
    """After each kill a bit of a file of the store, and of one of data/, flips.

    A run finds it and computes it again, or ends in one error that names the file; then what it
    says to delete is deleted, and the run goes on.
    """
    workspace = fresh("workspace")
    for _ in rounds:
        killed = killed_repro(workspace, drawn)
        if killed.status == 1:
            obey(workspace, killed.text)
        for top in (".potstill", "data"):
            flip(workspace, top, drawn)
    while (run := repro(workspace)).status:
        obey(workspace, run.text)
    assert_same(workspace, finished.workspace)


def flip(workspace: Workspace, top: str, drawn: random.Random) -> None:
    """Flip a random bit of a random file below a folder, in place."""
    paths = [path for path in sorted((workspace / top).rglob("*")) if path.is_file()]
    names = [path.relative_to(workspace.folder).as_posix() for path in paths]
    whole = [path for path, name in zip(paths, names, strict=True) if not spared(path, name)]
    if whole:
        path = drawn.choice(whole)
        path.chmod(0o644)
        content = bytearray(path.read_bytes())
        content[drawn.randrange(len(content))] ^= 1 << drawn.randrange(8)
        path.write_bytes(content)
        print("flipped", path.relative_to(workspace.folder))


def spared(path: Path, name: str) -> bool:
    return name.startswith(SPARED) or not path.stat().st_size or "/quarantine/" in name


def obey(workspace: Workspace, text: str) -> None:
    """Delete what a run's error says, which is one line and names a file or folder that exists."""
    [error] = [line for line in text.splitlines() if line.startswith("error: ")]
    print(error)
    assert "Traceback" not in text, text
    remedy = REMEDY.search(error)
    assert remedy, error
    name = remedy[1] if remedy[1] != "it" else error.split(": ")[1]
    workspace.forget(name)
