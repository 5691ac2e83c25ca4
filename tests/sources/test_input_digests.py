"""The user's files: found from a copy of the repository, and digested when they have changed."""

import os
from pathlib import Path

import pytest

from pipeline_lib.params import check_params
from pipeline_lib.sources import input_digests
from pipeline_lib.sources.input_digests import digest_inputs, share_inputs
from tests.pipeline.workspace import TASK, small_params

FILES = ("train.tsv", "dev.tsv", "test.tsv")


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "main/data/input"
    folder.joinpath("encoder").mkdir(parents=True)
    for name in (*FILES, "encoder/config.json"):
        (folder / name).write_text(name)
    monkeypatch.chdir(tmp_path / "main")
    return folder


def _digests() -> dict[str, dict[str, str | None]]:
    return digest_inputs(check_params(small_params()))


def test_digests_of_files_and_links(inputs: Path, tmp_path: Path) -> None:
    found = _digests()
    assert found.keys() == {f"tasks.{TASK}", "models"}
    keys = [f"tasks.{TASK}.source.files.{name.removesuffix('.tsv')}: {name}" for name in FILES]
    assert [*found[f"tasks.{TASK}"]] == keys
    assert [*found["models"]] == ["models.minilm.path: encoder"]
    assert len({*found[f"tasks.{TASK}"].values()}) == len(FILES)
    # What is behind links in a folder is read.
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/weights").write_text("before")
    (inputs / "encoder/linked").symlink_to(tmp_path / "outside")
    before = _digests()
    (tmp_path / "outside/weights").write_text("changed")
    assert _digests()["models"] != before["models"]
    # What is no file has no digest and is not waited for.
    before = _digests()
    (inputs / "dev.tsv").unlink()
    (inputs / "test.tsv").unlink()
    os.mkfifo(inputs / "test.tsv")
    os.mkfifo(inputs / "encoder/pipe")
    after = _digests()
    assert [digest for digest in after[f"tasks.{TASK}"].values() if digest] == ([*before[f"tasks.{TASK}"].values()][:1])
    assert after["models"] == before["models"]


def test_a_file_that_has_not_changed_is_not_read_again(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, read = _digests(), []
    sha256_file = input_digests.sha256_file

    def reading(path: Path) -> str:
        read.append(path.name)
        return sha256_file(path)

    monkeypatch.setattr(input_digests, "sha256_file", reading)
    assert _digests() == before and read == []
    (inputs / "dev.tsv").write_text("other")
    after = _digests()
    assert read == ["dev.tsv"] and after["models"] == before["models"]
    assert after[f"tasks.{TASK}"] != before[f"tasks.{TASK}"]


def test_nothing_is_linked_or_changed(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, [kept] = _digests(), [*Path(".").rglob("input_digests.json")]
    content = kept.read_bytes()
    for place in range(0, len(content), 7):
        flipped = bytearray(content)
        flipped[place] ^= 1
        kept.write_bytes(flipped)
        assert _digests() == before
    # The repository itself links nothing.
    before = sorted(inputs.rglob("*"))
    for root in (None, str(inputs.parents[1])):
        if root:
            monkeypatch.setenv("DVC_ROOT", root)
        share_inputs(Path("data/input"))
    share_inputs(inputs)
    assert sorted(inputs.rglob("*")) == before


def test_a_copy_of_a_repository_links_the_rest(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Git tracks one file of the encoder's folder, and a file that has changed since.
    (inputs / "encoder/notes.txt").write_text("notes")
    here = tmp_path / "copy/data/input"
    here.joinpath("encoder").mkdir(parents=True)
    (here / "encoder/notes.txt").write_text("notes")
    (here / "dev.tsv").write_text("own")
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.setenv("DVC_ROOT", str(tmp_path / "main"))
    for _ in range(2):
        share_inputs(Path("data/input"))
    links = {path.relative_to(here).as_posix() for path in here.rglob("*") if path.is_symlink()}
    assert links == {"train.tsv", "test.tsv", "encoder/config.json"}
    assert (here / "dev.tsv").read_text() == "own"
    assert (here / "encoder/config.json").read_text() == "encoder/config.json"
