"""A flipped bit in what later stages compute from is found, whichever file it is in."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.commands.verify import verify

from .workspace import Workspace, flip_byte

pytestmark = pytest.mark.slow

WITHOUT_DIGESTS = {"settings", "stages", "report", "speed", "fingerprints", "digests"}
"""Folders of settings, and of results that no stage computes from."""
DESCRIPTIONS = {"manifest.json", "alignment.json", "search.json", "rows.json", "source.json"}
"""Of how files were made: a flip in what these say of digests, rows and columns is found too."""


@contextmanager
def flipped(path: Path) -> Iterator[None]:
    """Flip a bit in a copy of the file, which may be a link, and put the file back."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    flip_byte(path)
    yield
    path.write_bytes(content)


def test_every_flip_is_found(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace.folder)
    folders = [path for path in Path("data").iterdir() if path.name not in WITHOUT_DIGESTS]
    files = [path for above in folders for path in above.rglob("*") if path.is_file()]
    files = [path for path in files if path.stat().st_size and path.parts[1] != "input"]
    missed = []
    for path in sorted(files):
        with flipped(path):
            try:
                verify()
            except PotstillError as error:
                assert path.parent.as_posix() in str(error)
            else:
                missed.append(path.name)
    assert len(files) > 70
    assert {*missed} <= DESCRIPTIONS
