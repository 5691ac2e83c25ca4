"""Which files were given, and which split each of them is.

Users give one file, several whose names tell the split, or a folder: from GLUE (``train.tsv``,
``dev.tsv``, ``test.tsv``), from the hub (``data/train-00000-of-00002.parquet``), or written by
``datasets`` with ``save_to_disk`` (a folder of Arrow files per split).
"""

import logging
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.file_formats import COMPRESSIONS, FORMATS, format_of, suffix_of
from pipeline_lib.tables.reader import is_hidden

_NAMES = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "development": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
    "validate": "dev",
    "eval": "dev",
    "evaluation": "dev",
    "test": "test",
    "testing": "test",
}
"""Words in file names, and the split that they mean."""
_HASH = r"[0-9a-f]{8,}(-[0-9a-f]{4,})*"
_PART = re.compile(rf"[-_]?(\d+(-of-\d+)?(-{_HASH})?|\d+-{_HASH}(-c\d+)?)([._](snappy|gz|zstd))?$|[-_][a-z]$")
"""The end of a file name if several files make up one split: of the hub's shards, with a hash or
without, of Spark's parts, and of ``train_a``, ``train_b``."""
_log = logging.getLogger(__name__)


def files_by_split(paths: Sequence[Path], dev: Path | None = None, test: Path | None = None) -> dict[str, list[Path]]:
    """Return the files of each split; ``all`` is to be divided into splits.

    :param paths: files and folders; :param dev: the dev file; :param test: the test file.
    """
    folders = [path for path in paths if path.is_dir()]
    named = [checked(path) for path in paths if not path.is_dir()]
    groups = [(split_of(stem), files) for (_, stem, _), files in _parts(named).items()]
    groups += [group for folder in folders for group in _groups(folder)]
    splits: dict[str, list[Path]] = {}
    if len(groups) == 1:
        # Whatever its name, as it is the only one.
        splits["train"] = groups[0][1]
    else:
        for split, files in groups:
            if split is None or split in splits:
                _refuse(files[0], split, splits)
            splits[split] = files
    for split, path in (("dev", dev), ("test", test)):
        if path is not None:
            splits[split] = [checked(path)]
    if set(splits) == {"train"}:
        return {"all": splits["train"]}
    if "train" not in splits:
        raise PotstillError(
            f"{', '.join(map(str, paths))}: no training file, only {', '.join(splits) or 'none'}. "
            "Name one: distill init TRAIN --dev DEV --test TEST."
        )
    order = [name for name in ("train", "dev", "test") if name in splits]
    return {name: splits[name] for name in [*order, *sorted(set(splits) - set(order))]}


def checked(path: Path) -> Path:
    """Return the path, once it is checked that the file exists and has a known format."""
    if not path.is_file():
        raise PotstillError(f"{path}: not found. Correct the path.")
    if format_of(path) is None:
        raise PotstillError(
            f"{path}: unknown file suffix; known are {', '.join(FORMATS)}, and those with {', '.join(COMPRESSIONS)} "
            "added. Save the file as one of these (a spreadsheet as CSV), or unpack it."
        )
    return path


def files_of_texts(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return files of unlabelled texts, each once, and the other files in their folders.

    :param paths: files, and folders, from which all files of a known format are used.
    """
    files: dict[Path, Path] = {}
    others: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.setdefault(path.resolve(), checked(path))
            continue
        inside = [p for p in sorted(path.rglob("*")) if p.is_file()]
        inside = [p for p in inside if not is_hidden(p.relative_to(path))]
        known = [p for p in inside if format_of(p)]
        if not known:
            raise _nothing_in(path)
        for file in known:
            files.setdefault(file.resolve(), file)
        others += [file for file in inside if file not in known]
    return [*files.values()], others


def split_of(*names: str) -> str | None:
    """Return the split in the first of these names that contains one, or None.

    MNLI's mismatched sets are further splits besides its matched ones, which are dev and test.
    """
    for name in names:
        words = re.split(r"[^a-z]+", name.lower())
        splits = {_NAMES[word] for word in words if word in _NAMES}
        if len(splits) == 1:
            return splits.pop() + ("_mismatched" if "mismatched" in words else "")
    return None


def _parts(files: Iterable[Path]) -> dict[tuple[Path, str, str], list[Path]]:
    """Return files that are parts of one split together, by folder, name and suffix."""
    groups: dict[tuple[Path, str, str], list[Path]] = {}
    for file in files:
        # If the folder is the split, the stem of a part is just its number.
        key = (file.parent, _PART.sub("", _stem(file)), suffix_of(file))
        groups.setdefault(key, []).append(file)
    return groups


def _groups(folder: Path) -> list[tuple[str | None, list[Path]]]:
    """Return the files in a folder with their split, grouping the parts of one split."""
    groups = _parts(
        file
        for file in sorted(folder.rglob("*"))
        if format_of(file) not in (None, "lines") and not is_hidden(file.relative_to(folder))
    )
    if not groups:
        raise _nothing_in(folder)
    candidates = []
    for (parent, stem, _), files in groups.items():
        inner = () if parent == folder else (parent.name,)
        candidates.append((split_of(stem, *inner), stem, files))
    # MRPC has dev.tsv and dev_ids.tsv; the first is the split.
    plain = {split for split, stem, _ in candidates if stem.lower() in _NAMES}
    named = [
        (split, files) for split, stem, files in candidates if split and (stem.lower() in _NAMES or split not in plain)
    ]
    if not named:
        return [(split, files) for split, _, files in candidates]
    read = {file for _, files in named for file in files}
    for file in (file for files in groups.values() for file in files if file not in read):
        _log.warning("%s: not read, since others are named as splits and it is not.", file)
    return named


def _nothing_in(folder: Path) -> PotstillError:
    return PotstillError(f"{folder}: no data files in this folder; known suffixes are {', '.join(FORMATS)}.")


def _stem(path: Path) -> str:
    return path.name[: len(path.name) - len(suffix_of(path))]


def _refuse(path: Path, split: str | None, splits: dict[str, list[Path]]) -> None:
    if split is None:
        raise PotstillError(
            f"{path}: its name does not tell its split (train, dev, test). Name the others with "
            "--dev and --test, or give only this file."
        )
    raise PotstillError(
        f"{path}: {split} is {splits[split][0]} already. Give one of them, or the folder of one data set only."
    )
