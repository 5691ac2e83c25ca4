"""Files are whole or absent, whatever happens while they are written."""

import errno
import os
from pathlib import Path

import pytest
from safetensors import SafetensorError

from pipeline_lib.base import files
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import (
    atomic_path,
    fresh_folder,
    link_or_copy,
    read_json,
    sha256_file,
    sha256_folder,
    sha256_json,
    write_json,
)
from pipeline_lib.base.seals import SEAL, SOURCE, check_sealed, digests, faults_of, write_seal

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_atomic_path_is_whole_or_absent(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "new" / "file.txt") as temporary:
        temporary.write_text("hello")
        assert not (tmp_path / "new" / "file.txt").exists()
    assert (tmp_path / "new" / "file.txt").read_text() == "hello"
    assert names(tmp_path / "new") == ["file.txt"]
    # Other errors pass as they are.
    refused = PotstillError("row 3: (os error 2)")
    with pytest.raises(PotstillError) as caught, atomic_path(tmp_path / "f"):
        raise refused
    assert caught.value is refused
    # Writers of one file do not share a temporary name.
    with atomic_path(tmp_path / "f") as first, atomic_path(tmp_path / "f") as second:
        assert first != second and first.parent == second.parent == tmp_path
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "f").read_text() == "first"
    assert names(tmp_path) == ["f", "new"]


@pytest.mark.parametrize("crash", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_crash_inside_leaves_the_old_file_alone(tmp_path: Path, crash: type[BaseException]) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(crash), atomic_path(path) as temporary:
        temporary.write_text("half of the n")
        raise crash
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file.txt"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_full_disk_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, call, full)
    with pytest.raises(PotstillError, match=r"value\.json: .*No space left.*Free disk space"):
        write_json(tmp_path / "value.json", {"a": 1})
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
        # tokenizers raises no kind of its own.
        Exception("No space left on device (os error 28)"),
    ],
    ids=["system", "safetensors", "tokenizers"],
)
def test_every_librarys_full_disk_is_the_same_error(tmp_path: Path, error: Exception) -> None:
    with (
        pytest.raises(PotstillError, match=r"model: .*No space left.*Free disk space"),
        atomic_path(tmp_path / "model") as temporary,
    ):
        temporary.write_bytes(b"half")
        raise error
    assert names(tmp_path) == []


@pytest.mark.parametrize("links", [True, False], ids=["links", "no_links"])
def test_the_first_file_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    if not links:
        monkeypatch.setattr(files.os, "link", refuse)
    for text in ("first", "second"):
        with atomic_path(tmp_path / "f", keep_first=True) as temporary:
            temporary.write_text(text)
    assert (tmp_path / "f").read_text() == "first"
    assert names(tmp_path) == ["f"]


def test_json_is_sorted_and_faults_are_named(tmp_path: Path) -> None:
    value = {"b": [1, 2.5, None], "a": "ü"}
    write_json(tmp_path / "value.json", value)
    assert read_json(tmp_path / "value.json") == value
    text = (tmp_path / "value.json").read_text()
    assert text.index('"a"') < text.index('"b"') and text.endswith("}\n")
    for content in (b'{"a": ', b"9" * 5000, b"\xff\xfe"):
        (tmp_path / "faulty.json").write_bytes(content)
        with pytest.raises(PotstillError, match=r"faulty\.json: not valid JSON"):
            read_json(tmp_path / "faulty.json")
    for name, message in (("absent.json", r"absent\.json: not found"), ("", r"not be read \(Is a directory\)")):
        with pytest.raises(PotstillError, match=message):
            read_json(tmp_path / name)
    (tmp_path / "taken").write_text("")
    with pytest.raises(PotstillError, match="could not be written"):
        write_json(tmp_path / "taken" / "value.json", 1)


def test_digests_cover_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello")
    assert sha256_file(tmp_path / "a") == HELLO
    assert sha256_json({"a": 1, "b": 2}) == sha256_json({"b": 2, "a": 1})
    assert sha256_json({"a": 1}) != sha256_json({"a": 1.0})

    def digest(files: dict[str, str]) -> str:
        folder = fresh_folder(tmp_path / "folder")
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        return sha256_folder(folder)

    base = digest({"a": "1", "sub/b": "2"})
    assert digest({"sub/b": "2", "a": "1"}) == base
    others = [{"a": "1", "sub/b": "3"}, {"a": "1", "sub/c": "2"}, {"a": "1"}]
    assert len({base, *map(digest, others)}) == 4


def test_a_link_shares_the_bytes_and_a_copy_stands_in_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").write_text("hello")
    # Files in DVC's cache are read-only, but a privileged user may write all the same: none is opened for writing.
    modes: list[str] = []
    watch = lambda path, mode="r", *rest, **named: modes.append(mode) or open(path, mode, *rest, **named)  # noqa: E731, SIM115
    monkeypatch.setattr(files, "open", watch, raising=False)
    link_or_copy(tmp_path / "source", tmp_path / "new" / "target")
    assert modes and all(set(mode) <= set("rb") for mode in modes)
    assert (tmp_path / "new" / "target").samefile(tmp_path / "source")
    link_or_copy(tmp_path / "source", tmp_path / "new" / "target")
    assert names(tmp_path / "new") == ["target"]

    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "cross-device link")

    monkeypatch.setattr(files.os, "link", refuse)
    (tmp_path / "source").write_text("hello")
    link_or_copy(tmp_path / "source", tmp_path / "target")
    assert sha256_file(tmp_path / "target") == HELLO
    assert not (tmp_path / "target").samefile(tmp_path / "source")


def test_folders_are_emptied_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f" / "sub").mkdir(parents=True)
    (tmp_path / "f" / "old").write_text("")
    assert names(fresh_folder(tmp_path / "f")) == []
    assert fresh_folder(tmp_path / "g" / "h").is_dir()

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "inner")

    monkeypatch.setattr(files.shutil, "rmtree", refuse)
    with pytest.raises(PotstillError, match=r"f: could not be written \(Permission denied\)"):
        fresh_folder(tmp_path / "f")


@pytest.mark.parametrize("folder", ["taken", "taken/sub", "taken/sub/deeper"])
def test_a_file_where_a_folder_belongs_is_named(tmp_path: Path, folder: str) -> None:
    (tmp_path / "taken").write_text("kept")
    with pytest.raises(PotstillError, match=r"taken: a file, where a folder is needed"):
        fresh_folder(tmp_path / folder)
    (tmp_path / "source").write_text("")
    with pytest.raises(PotstillError, match="could not be written"):
        link_or_copy(tmp_path / "source", tmp_path / "taken/sub/target")
    assert (tmp_path / "taken").read_text() == "kept"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one/deep").mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "one/deep/model.safetensors"):
        (tmp_path / name).write_text(f"content of {name}")
    return tmp_path


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_altered_and_lost_files_are_missed(folder: Path) -> None:
    write_seal(folder)
    check_sealed(folder)
    flip(folder / "model.safetensors")
    remedy = f"Delete {folder} and run `distill run`"
    with pytest.raises(PotstillError, match=rf"model\.safetensors: altered .*{remedy}"):
        check_sealed(folder)
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
    write_seal(folder)
    flip(folder / "config.json")
    (folder / "model.safetensors").unlink()
    assert [fault.split(": ")[1].split()[0] for fault in faults_of(folder / SEAL)] == ["altered", "missing,"]
    # What nobody sealed is not checked.
    (folder / SEAL).unlink()
    check_sealed(folder)
    write_json(folder / SOURCE, {"where": "another program's"})
    check_sealed(folder)


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
