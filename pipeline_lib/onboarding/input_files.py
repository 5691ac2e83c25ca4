"""Which files were given, which split each of them is, and the texts in those that are not labelled.

Users give one file, several whose names tell the split, or a folder: from GLUE (``train.tsv``,
``dev.tsv``, ``test.tsv``), from the hub (``data/train-00000-of-00002.parquet``), or written by
``datasets`` with ``save_to_disk`` (a folder of Arrow files per split).
"""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.file_formats import COMPRESSIONS, FORMATS, format_of, suffix_of
from pipeline_lib.onboarding.columns import choose_texts, look_at
from pipeline_lib.onboarding.questions import Ask, Question
from pipeline_lib.params import UNLABELLED
from pipeline_lib.tables.contents import Content, joined, read_content
from pipeline_lib.tables.layouts import class_files
from pipeline_lib.tables.reader import ReadOptions, files_in, is_hidden

_NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "development", "valid", "validation", "validate", "val", "eval", "evaluation"), "dev"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""Words in file names, and the split that they mean."""
_HASH = r"[0-9a-f]{8,}(-[0-9a-f]{4,})*"
_PART = re.compile(rf"[-_]?(\d+(-of-\d+)?(-{_HASH})?|\d+-{_HASH}(-c\d+)?)([._](snappy|gz|zstd))?$|[-_][a-z]$")
"""The end of a file name if several files make up one split: of the hub's shards, with a hash or
without, of Spark's parts, and of ``train_a``, ``train_b``."""
_SHOWN = 8
"""How many faulty files are listed before the rest is only counted."""
_log = logging.getLogger(__name__)


def files_by_split(
    paths: Sequence[Path], dev: float | Path | None = None, test: float | Path | None = None
) -> dict[str, list[Path]]:
    """Return the files of each split; ``all`` is to be divided into splits.

    :param paths: files and folders; :param dev: the dev file, if it is none to be drawn; :param test: the test file.
    """
    named = [checked(path) for path in paths if not path.is_dir()]
    groups = [(split_of(stem), files) for (_, stem, _), files in _parts(named).items()]
    groups += [group for folder in paths if folder.is_dir() for group in _groups(folder)]
    splits: dict[str, list[Path]] = {}
    if len(groups) == 1:
        # Whatever its name, as it is the only one.
        splits["train"] = groups[0][1]
    else:
        for split, files in groups:
            if split is None:
                raise PotstillError(
                    f"{files[0]}: its name does not tell its split (train, dev, test). Name the others with "
                    "--dev and --test, or give only this file."
                )
            if split in splits:
                raise PotstillError(
                    f"{files[0]}: {split} is {splits[split][0]} already. Give one of them, or the folder of one data "
                    "set only."
                )
            splits[split] = files
    splits |= {split: [checked(path)] for split, path in (("dev", dev), ("test", test)) if isinstance(path, Path)}
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
    if re.match(r"[a-z]+:/", str(path)):
        raise PotstillError(f"{path}: a web address. Download the file, and give its path.")
    if not path.is_file():
        what = "a pipe, which is read only once. Save it as a file" if path.exists() else "not found. Correct the path"
        raise PotstillError(f"{path}: {what}.")
    if format_of(path) is None:
        raise PotstillError(
            f"{path}: unknown file suffix; known are {', '.join(FORMATS)}, and those with {', '.join(COMPRESSIONS)} "
            "added. Save the file as one of these (a spreadsheet as CSV), or unpack it."
        )
    return path


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
    groups: dict[tuple[Path, str, str], list[Path]] = {}
    for file in files:
        # If the folder is the split, the stem of a part is just its number.
        suffix = suffix_of(file)
        key = (file.parent, _PART.sub("", file.name.removesuffix(suffix)), suffix)
        groups.setdefault(key, []).append(file)
    return groups


def _groups(folder: Path) -> list[tuple[str | None, list[Path]]]:
    """Return the files in a folder with their split, grouping the parts of one split.

    A folder with a folder per class stands for its files.
    """
    inside = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    if of_classes := [path for path in inside if not _is_of_splits(path) and class_files(path)]:
        return [(split_of(path.name) if path != folder else None, [path]) for path in of_classes]
    tables = [file for file in files_in(folder) if format_of(file) != "lines"]
    if not tables:
        raise PotstillError(
            f"{folder}: only files with a text per line. Give one with labels, such as CSV; "
            "a table that is called .txt needs another suffix, .csv or .tsv."
        )
    candidates = []
    for (parent, stem, _), files in _parts(tables).items():
        inner = () if parent == folder else (parent.name,)
        candidates.append((split_of(stem, *inner), stem.lower() in _NAMES, files))
    # MRPC has dev.tsv and dev_ids.tsv; the first is the split.
    plain = {split for split, is_plain, _ in candidates if is_plain}
    named = [(split, files) for split, is_plain, files in candidates if split and (is_plain or split not in plain)]
    if not named:
        return [(split, files) for split, _, files in candidates]
    for file in sorted({*tables} - {file for _, files in named for file in files}):
        _log.warning("%s: not read, since others are named as splits and it is not.", file)
    return named


def _is_of_splits(folder: Path) -> bool:
    return any(path.is_dir() and split_of(path.name) for path in folder.iterdir())


def files_of_texts(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return files of unlabelled texts, each once, and the other files in their folders.

    :param paths: files, and folders, from which all files of a readable format are used.
    """
    files: dict[Path, Path] = {}
    others: list[Path] = []
    for path in paths:
        readable = files_in(path) if path.is_dir() else [checked(path)]
        for file in readable:
            files.setdefault(file.resolve(), file)
        inside = sorted(path.rglob("*")) if path.is_dir() else []
        others += [p for p in inside if p.is_file() and p not in readable and not is_hidden(p.relative_to(path))]
    return [*files.values()], others


def read_further(paths: Sequence[Path], text: Sequence[str], options: ReadOptions, ask: Ask) -> Content:
    """Read files of unlabelled texts, one after the other, under the names of the task's text columns.

    :param text: these columns; :param options: those of the task's files, whose column names may also apply to these.
    """
    contents: list[Content] = []
    faults: list[str] = []
    answers: dict[tuple[str, ...], str] = {}

    def ask_once(question: Question) -> str:
        """Ask each question once for all similar files."""
        key = tuple(question.choices)
        answers[key] = answers[key] if key in answers else ask(question)
        return answers[key]

    for path in paths:
        try:
            contents.append(_renamed(_read(path, options), text, ask_once))
        except PotstillError as error:
            faults.append(str(error))
    if len(paths) == 1 and faults:
        raise PotstillError(faults[0])
    if faults:
        more = [f"and {len(faults) - _SHOWN:,} more"] if len(faults) > _SHOWN else []
        shown = "\n".join(f"  {fault}" for fault in [*faults[:_SHOWN], *more])
        raise PotstillError(f"--unlabelled: {len(faults):,} of {len(paths):,} files cannot be used:\n{shown}")
    return joined([replace(content, table=content.table.select([*text])) for content in contents])


def _read(path: Path, options: ReadOptions) -> Content:
    content, columns = read_content([path], replace(options, columns=None)), options.columns
    if columns is not None and content.is_nameless and len(content.names) == len(columns):
        return read_content([path], options)
    return content


def _renamed(content: Content, text: Sequence[str], ask: Ask) -> Content:
    if set(text) <= set(content.names):
        return content
    contents, names = {UNLABELLED: content}, ", ".join(text)
    columns = choose_texts(look_at(contents), contents, (), None, ask, f"the task's names in this file: {names}")
    if len(columns) != len(text):
        raise PotstillError(
            f"{content.paths[0]}: {len(columns)} text columns ({', '.join(columns)}), but the task reads "
            f"{len(text)}. Give them the task's names: {names}."
        )
    table = content.table.select(columns).rename_columns([*text])
    return replace(content, table=table, format=None, columns=None)
