"""Labelled texts without a table: a folder per class, as scikit-learn's ``load_files`` reads, and fastText's marks."""

import json
from collections.abc import Sequence
from pathlib import Path

from pipeline_lib.base.file_formats import format_of
from pipeline_lib.tables.reader import is_hidden, note_once

LABEL = "label"
_MARK = "__label__"
_UNLABELLED = ("unsup", "unlabel")
"""How the names of folders begin whose texts have no class, as of the IMDB reviews."""


def class_files(folder: Path) -> dict[str, list[Path]]:
    """Return the text files of each class; none, unless the folder holds two or more folders of such files alone."""
    classes: dict[str, list[Path]] = {}
    inside = [path for path in sorted(folder.iterdir()) if path.is_dir() and not is_hidden(Path(path.name))]
    for inner in (path for path in inside if not path.name.startswith(_UNLABELLED)):
        files = sorted(path for path in inner.rglob("*") if path.is_file() and not is_hidden(path.relative_to(folder)))
        if not files or any(format_of(file) != "lines" for file in files):
            return {}
        classes[inner.name] = files
    if len(classes) < 2:
        return {}
    for path in inside:
        if path.name not in classes:
            note_once(f"{path}: not read, since its name is of no class. Give it with --unlabelled to use its texts.")
    return classes


def marked(lines: Sequence[str]) -> tuple[list[str], list[list[str]], list[int]] | None:
    """Return the texts of fastText's lines, their labels, and the lines, which are not blank.

    None: some line does not begin with a label.
    """
    rows = [number for number, line in enumerate(lines) if line.strip()]
    words = [lines[number].split() for number in rows]
    if not words or not all(row[0].startswith(_MARK) for row in words):
        return None
    labels = [[word.removeprefix(_MARK) for word in row if word.startswith(_MARK)] for row in words]
    return [" ".join(word for word in row if not word.startswith(_MARK)) for row in words], labels, rows


def as_cells(labels: Sequence[Sequence[str]]) -> tuple[list[str], bool]:
    """Return each row's labels as a cell, and whether the cells are lists, as JSON: some row has several."""
    if all(len(row) == 1 for row in labels):
        return [row[0] for row in labels], False
    return [json.dumps([*row], ensure_ascii=False) for row in labels], True
