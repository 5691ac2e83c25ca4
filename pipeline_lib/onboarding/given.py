"""Which files were given, and which split each of them is.

One file, several that are told apart by their names, or a folder: of GLUE (``train.tsv``,
``dev.tsv``, ``test.tsv``), of the hub (``data/train-00000-of-00002.parquet``), or as ``datasets``
writes it with ``save_to_disk`` (a folder of Arrow files per split).
"""

import re
from collections.abc import Sequence
from pathlib import Path

from pipeline_lib.base.errors import DistilleryError

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".txt": "text",
}
"""Formats by the ending of a file's name; text is a text per line."""
_NAMES = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "development": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
    "test": "test",
    "testing": "test",
}
"""What is written in names of files, and the split that it means."""
_PART = re.compile(r"[-_]?\d+(-of-\d+)?$")
"""The end of the name of one file of several that are one split."""


def files_by_split(
    paths: Sequence[Path], dev: Path | None = None, test: Path | None = None
) -> dict[str, list[Path]]:
    """Return the files of each split, ``all`` where one is to be drawn from.

    :param paths: files and folders; :param dev: the dev file; :param test: the test file.
    :raises DistilleryError: if a file is not there, of no known format, or of no known split.
    """
    groups = [group for path in paths for group in _groups(path)]
    found: dict[str, list[Path]] = {}
    if len(groups) == 1:
        # Whatever its name is: there is no other.
        found["train"] = groups[0][1]
    else:
        for split, files in groups:
            if split is None or split in found:
                _refuse(files[0], split, found)
            found[split] = files
    for split, path in (("dev", dev), ("test", test)):
        if path is not None:
            found[split] = [checked(path)]
    if set(found) == {"train"}:
        return {"all": found["train"]}
    if "train" not in found:
        raise DistilleryError(
            f"{', '.join(map(str, paths))}: no training file, only {', '.join(found) or 'none'}. "
            "Name one: distill init TRAIN --dev DEV --test TEST."
        )
    order = [name for name in ("train", "dev", "test") if name in found]
    return {name: found[name] for name in [*order, *sorted(set(found) - set(order))]}


def checked(path: Path) -> Path:
    """Return a file that is there and of a known format.

    :raises DistilleryError: if it is not.
    """
    if not path.is_file():
        raise DistilleryError(f"{path}: not found. Correct the path.")
    if path.suffix.lower() not in FORMATS:
        raise DistilleryError(
            f"{path}: no format goes with this ending; there are {', '.join(FORMATS)}. Save it as "
            "one of them (a sheet as CSV, JSON as one object per line), or unpack it."
        )
    return path


def files_of_texts(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return files of unlabelled texts, each once, and what else lies in their folders.

    :param paths: files, and folders, of which all files of a known format are meant.
    :raises DistilleryError: if a file is not there or of no known format, or a folder has none.
    """
    found: dict[Path, Path] = {}
    others: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.setdefault(path.resolve(), checked(path))
            continue
        inside = [p for p in sorted(path.rglob("*")) if p.is_file()]
        inside = [p for p in inside if not _is_hidden(p.relative_to(path))]
        known = [p for p in inside if p.suffix.lower() in FORMATS]
        if not known:
            raise _nothing_in(path)
        for own in known:
            found.setdefault(own.resolve(), own)
        others += [own for own in inside if own not in known]
    return [*found.values()], others


def split_of(*names: str) -> str | None:
    """Return the split that a name says, the first of these that says one; None: none does.

    MNLI's mismatched sets are splits beside its matched ones, which are dev and test.
    """
    for name in names:
        words = re.split(r"[^a-z]+", name.lower())
        splits = {_NAMES[word] for word in words if word in _NAMES}
        if len(splits) == 1:
            return splits.pop() + ("_mismatched" if "mismatched" in words else "")
    return None


def _groups(path: Path) -> list[tuple[str | None, list[Path]]]:
    """Return the files at a path with their split; those that are parts of one together."""
    if not path.is_dir():
        return [(split_of(path.stem), [checked(path)])]
    groups: dict[tuple[Path, str, str], list[Path]] = {}
    for file in sorted(path.rglob("*")):
        ending = file.suffix.lower()
        if ending in FORMATS and ending != ".txt" and not _is_hidden(file.relative_to(path)):
            # The stem of a part is its number alone where the folder is the split.
            key = (file.parent, _PART.sub("", file.stem), ending)
            groups.setdefault(key, []).append(file)
    if not groups:
        raise _nothing_in(path)
    found = []
    for (folder, stem, _), files in groups.items():
        inner = () if folder == path else (folder.name,)
        found.append((split_of(stem, *inner), stem, files))
    # Of MRPC's dev.tsv and dev_ids.tsv the first is meant.
    plain = {split for split, stem, _ in found if stem.lower() in _NAMES}
    named = [
        (split, files)
        for split, stem, files in found
        if split and (stem.lower() in _NAMES or split not in plain)
    ]
    return named or [(split, files) for split, _, files in found]


def _nothing_in(folder: Path) -> DistilleryError:
    return DistilleryError(
        f"{folder}: no data files in this folder; their endings are {', '.join(FORMATS)}."
    )


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "cache-")) for part in path.parts)


def _refuse(path: Path, split: str | None, found: dict[str, list[Path]]) -> None:
    if split is None:
        raise DistilleryError(
            f"{path}: its name says no split (train, dev, test). Name the others by --dev and "
            "--test, or give this file alone."
        )
    raise DistilleryError(
        f"{path}: {split} is {found[split][0]} already. Give one of them, or the folder of one "
        "data set."
    )
