"""What is read of a sealed folder is what was written there."""

from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import write_json
from pipeline_lib.base.seals import SEAL, SOURCE, check_sealed, digests, faults_of, write_seal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one/deep").mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "one/deep/model.safetensors"):
        (tmp_path / name).write_text(f"content of {name}")
    return tmp_path


def flip(path: Path) -> None:
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_altered_and_lost_files_are_missed(folder: Path) -> None:
    write_seal(folder)
    check_sealed(folder)
    flip(folder / "model.safetensors")
    remedy = f"Delete {folder} and run `dvc repro`"
    with pytest.raises(PotstillError, match=rf"model\.safetensors: altered .*{remedy}"):
        check_sealed(folder)
    # One file is checked alone.
    write_seal(folder)
    flip(folder / "config.json")
    check_sealed(folder / "model.safetensors")
    with pytest.raises(PotstillError, match=r"config\.json: altered"):
        check_sealed(folder / "config.json")


def test_lost_and_unsealed(folder: Path) -> None:
    write_seal(folder)
    (folder / "one/deep/model.safetensors").unlink()
    with pytest.raises(PotstillError, match=r"model\.safetensors: missing, though sealed\.json"):
        check_sealed(folder)
    # Every fault is listed.
    write_seal(folder)
    flip(folder / "config.json")
    (folder / "model.safetensors").unlink()
    assert [fault.split(": ")[1].split()[0] for fault in faults_of(folder / SEAL)] == ["altered", "missing,"]


@pytest.mark.parametrize("below", ["one", "one/deep", "one/deep/model.safetensors"])
def test_what_was_fetched_is_checked_by_the_record_above(folder: Path, below: str) -> None:
    write_json(folder / SOURCE, {"source": None, "sha256": digests(folder)})
    flip(folder / "config.json")
    check_sealed(folder / below)
    flip(folder / "one/deep/model.safetensors")
    with pytest.raises(PotstillError, match=rf"deep/model\.safetensors: altered.*Delete {folder} "):
        check_sealed(folder / below)


@pytest.mark.parametrize("content", ['{"sha256": "0"}', "{", "[]", "{}", '{"sha256": {"a": 1}}'])
def test_a_damaged_seal_is_refused(folder: Path, content: str) -> None:
    write_seal(folder)
    (folder / SEAL).write_text(content)
    with pytest.raises(PotstillError, match=f"{SEAL}: "):
        check_sealed(folder)


def test_what_nobody_sealed_is_not_checked(folder: Path) -> None:
    check_sealed(folder)
    write_json(folder / SOURCE, {"where": "another program's"})
    check_sealed(folder)
