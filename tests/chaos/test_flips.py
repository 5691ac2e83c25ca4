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
SPARED = (str(TIMINGS), "data/input/", ".potstill/store/quarantine", *(f"data/{name}" for name in HOLD_TIMES))
"""Files that cannot be computed again with the same bytes."""


def test_flips_between_kills(
    finished: Finished, fresh: Callable[[str], Workspace], drawn: random.Random, rounds: range
) -> None:
    """After each kill, and once all is finished, bits of files of the state folder and data/ flip.

    A run finds that and computes the file again, or ends in one error that names it; then what it says to delete is
    deleted, and the run goes on.  That `distill verify` names every flip is shown in tests/pipeline/test_damage.py.
    """
    workspace = fresh("workspace")
    for _ in rounds:
        killed = killed_repro(workspace, drawn)
        if killed.status == 1:
            obey(workspace, killed.text)
        flip_some(workspace, drawn)
    finish(workspace)
    flip_some(workspace, drawn)
    finish(workspace)
    assert_same(workspace, finished.workspace)


def finish(workspace: Workspace) -> None:
    """Run until all is done, and do what errors say meanwhile."""
    while (run := repro(workspace)).status:
        obey(workspace, run.text)


def flip_some(workspace: Workspace, drawn: random.Random) -> None:
    """Flip a random bit of a random file in each of six folders, of the state and of data/."""
    kinds: dict[str, list[Path]] = {}
    for path in [*workspace.folder.glob(".potstill/**/*"), *workspace.folder.glob("data/**/*")]:
        name = path.relative_to(workspace.folder)
        if path.is_file() and path.stat().st_size and not name.as_posix().startswith(SPARED):
            kinds.setdefault("/".join(name.parts[:-1][:3]), []).append(path)
    for kind in drawn.sample(sorted(kinds), min(6, len(kinds))):
        path = drawn.choice(sorted(kinds[kind]))
        path.chmod(0o644)
        content = bytearray(path.read_bytes())
        content[drawn.randrange(len(content))] ^= 1 << drawn.randrange(8)
        path.write_bytes(content)
        print("flipped", path.relative_to(workspace.folder))


def obey(workspace: Workspace, text: str) -> None:
    """Delete what a run's error says, which is one line and names a file or folder that exists."""
    [error] = [line for line in text.splitlines() if line.startswith("error: ")]
    print(error)
    assert "Traceback" not in text, text
    remedy = REMEDY.search(error)
    assert remedy, error
    name = remedy[1] if remedy[1] != "it" else error.split(": ")[1]
    workspace.forget(name)
