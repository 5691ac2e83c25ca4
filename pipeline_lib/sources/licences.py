"""Declared licences: of a package in its metadata, of a model in its card, of given files.

Nothing is looked up elsewhere and nothing is inferred.  A package's licence need not be that of the
model inside it, so each is reported with the one that declares it.
"""

import re
from collections.abc import Mapping
from email.parser import HeaderParser
from pathlib import Path

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.params.base import PinnedPackage
from pipeline_lib.sources.archives import read_member
from pipeline_lib.sources.packages import cached, downloads

CARD = "README.md"
"""A model card, whose front matter names the licence."""
KEYS = ("licence", "license", "terms")
"""Keys of the licence in the provenance of files with answers."""
_FRONT_MATTER = re.compile(r"\A\s*---\s*\n(.*?)\n---\s*$", re.DOTALL | re.MULTILINE)
_ENDINGS = {"wheel": ".whl", "sdist": ".tar.gz"}


def package_licences(package: PinnedPackage) -> list[str]:
    """Return what a pinned package and the card of a model in it declare: ``package: MIT``.

    Only an archive that was already fetched is read; nothing is downloaded.
    """
    archive = cached(downloads(), package.requirement, package.sha256)
    if archive is None:
        return []
    name = archive.name.removesuffix(_ENDINGS[package.artifact])
    inner = f"{'-'.join(name.split('-')[:2])}.dist-info/METADATA"
    stated = _member(archive, inner if package.artifact == "wheel" else f"{name}/PKG-INFO")
    licences = [f"the package: {licence}" for licence in _of_metadata(stated)]
    folder = getattr(package, "folder", None)
    return licences if folder is None else licences + _of_card(_member(archive, f"{folder}/{CARD}"))


def card_licences(folder: Path) -> list[str]:
    """Return what the model card in a folder declares: ``its README.md: apache-2.0``."""
    path = folder / CARD
    return _of_card(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else []


def given_licences(provenance: Mapping[str, str]) -> list[str]:
    """Return what the provenance of files with answers declares: ``terms: free``."""
    return [f"{key}: {provenance[key]}" for key in KEYS if key in provenance]


def _member(archive: Path, member: str) -> str:
    try:
        return read_member(archive, member).decode("utf-8", errors="replace")
    except PotstillError:
        return ""


def _of_metadata(text: str) -> list[str]:
    stated = HeaderParser().parsestr(text)
    # Some packages give their whole licence text; its first line is the name.
    licence = (stated["License-Expression"] or stated["License"] or "").strip().split("\n")[0]
    if licence and licence != "UNKNOWN":
        return [licence]
    classifiers = [line.split(" :: ") for line in stated.get_all("Classifier", [])]
    return [words[-1] for words in classifiers if words[0] == "License"]


def _of_card(text: str) -> list[str]:
    from ruamel.yaml import YAML, YAMLError

    match = _FRONT_MATTER.match(text)
    try:
        values = YAML(typ="safe", pure=True).load(match[1]) if match else {}
    except YAMLError:
        return []
    licence = values.get("license") if isinstance(values, dict) else None
    named = licence if isinstance(licence, list) else [licence] * (licence is not None)
    return [f"its {CARD}: {licence_name}" for licence_name in named]
