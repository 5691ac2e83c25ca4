"""Sets of another revision, out of DVC's cache."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.inspection.revisions import set_at
from tests.commands.running import distill

from .made_up import TASK, TEACHER, made_up_transfer

SET = f"data/transfer/{TASK}/full"
PIPELINE = """stages:
  all:
    cmd: none
    outs: [{transfer}, {outputs}]
"""


def cached(path: Path, cache: Path) -> str:
    """Move a file or the files of a folder into the cache, as DVC does; return the digest."""
    if path.is_file():
        digest = hashlib.md5(path.read_bytes()).hexdigest()
        (cache / digest[:2]).mkdir(parents=True, exist_ok=True)
        shutil.move(path, cache / digest[:2] / digest[2:])
        return digest
    listing = path.with_name("listing")
    files = [{"md5": cached(file, cache), "relpath": file.name} for file in sorted(path.iterdir())]
    listing.write_text(json.dumps(files))
    digest = cached(listing, cache)
    place = cache / digest[:2] / digest[2:]
    place.rename(place.with_name(f"{place.name}.dir"))
    return f"{digest}.dir"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository whose one commit has a set and its outputs, in the cache alone."""
    monkeypatch.chdir(tmp_path)
    made_up_transfer(Layout(Path("data")))
    outputs = f"data/outputs/{TASK}/{TEACHER}/full"
    Path("dvc.yaml").write_text(PIPELINE.format(transfer=SET, outputs=outputs))
    cache = Path(".dvc/cache/files/md5")
    outs = [{"path": own, "hash": "md5", "md5": cached(Path(own), cache)} for own in (SET, outputs)]
    lock = {"schema": "2.0", "stages": {"all": {"cmd": "none", "outs": outs}}}
    Path("dvc.lock").write_text(json.dumps(lock))
    Path(".dvc/config").touch()
    shutil.rmtree("data")
    author = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for command in ("init -q", "add dvc.yaml dvc.lock .dvc/config", "commit -qm all"):
        subprocess.run(["git", *command.split()], check=True, env=os.environ | author)
    return tmp_path


def test_a_set_with_what_belongs_to_it(repository: Path) -> None:
    with set_at(f"{SET}@HEAD") as folder:
        found = JoinedRows.open(folder)
        assert found.classes == 2 and len(found) == 9
        (batch, *_) = found.batches()
        assert batch.table["text"].to_pylist() == ["a good film", "a joy to watch"]
    assert not folder.exists() and not Path("data").exists()
    shown = distill("shards", "show", f"{SET}@HEAD", "--rows", "1")
    assert "a good film" in shown and "1 of 9 rows shown" in shown
    assert distill("shards", "export", f"{SET}@HEAD", "--to", "before.parquet").endswith("9 of 9 rows\n")
    with pytest.raises(PotstillError, match="nowhere: no such revision here"):
        set_at(f"{SET}@nowhere").__enter__()
    with pytest.raises(PotstillError, match="no shard set of this path and revision"):
        set_at("data/transfer/other@HEAD").__enter__()


def test_a_folder_whose_name_has_the_sign(tmp_path: Path) -> None:
    (tmp_path / "a@b").mkdir()
    with set_at(str(tmp_path / "a@b")) as folder:
        assert folder == tmp_path / "a@b"
