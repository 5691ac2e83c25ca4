"""Several labels in one cell: a list in JSON or Python's notation, or names between separators."""

import json
import re
from collections.abc import Collection, Sequence

SEPARATORS = ("|", ";", ",", " ")
"""What stands between labels; of several that fit, the first counts."""
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'")
_ESCAPED = re.compile(r"\\(.)")


def bracketed(cell: str) -> list[str] | None:
    """Return the entries of a list as JSON, Python, pandas or numpy write it; None: it is none.

    Quotes and commas may be missing, as in ``[joy, anger]`` and ``['joy' 'anger']``.
    """
    if len(cell) < 2 or _BRACKETS.get(cell[0]) != cell[-1]:
        return None
    try:
        entries = json.loads(cell)
    except ValueError:
        entries = None
    if isinstance(entries, list) and all(isinstance(entry, str | int) for entry in entries):
        return [str(entry).strip() for entry in entries]
    inner = cell[1:-1].strip()
    quoted = [_ESCAPED.sub(r"\1", a or b).strip() for a, b in _QUOTED.findall(inner)]
    return quoted or split_at("," if "," in inner else " ", inner)


def split_at(separator: str, cell: str) -> list[str]:
    """Return the parts of a cell between separators, without empty ones."""
    return [part for part in map(str.strip, cell.split(separator)) if part]


def entries_of(cell: str, labels: Collection[str]) -> list[str] | None:
    """Return the labels of a cell; None if it is no list of known ones.

    An empty cell and ``[]`` have none.

    :param labels: all values that are labels, which tell whether a comma separates or belongs to one.
    """
    entries = bracketed(cell)
    choices = [entries] if entries is not None else [[cell], *(split_at(separator, cell) for separator in SEPARATORS)]
    return next((choice for choice in choices if all(entry in labels for entry in choice)), None)


def separator_of(cells: Sequence[str]) -> str | None:
    """Return what separates the labels in a column's cells, or None if they are no lists of names.

    It divides some cells, and so that few different names come out, each of which recurs.
    """
    filled = [cell for cell in cells if cell and bracketed(cell) is None]
    for separator in SEPARATORS:
        lists = [split_at(separator, cell) for cell in filled]
        names = [name for entries in lists for name in entries]
        several = sum(len(entries) > 1 for entries in lists)
        if several and 2 <= len({*names}) <= len(names) / 2 and _are_names(names, lists):
            return separator
    return None


_MOST = 200
"""More different names are no labels."""


def _are_names(names: Sequence[str], lists: Sequence[Sequence[str]]) -> bool:
    """Whether parts of cells are names of labels: few, short, and none twice in a cell."""
    short = all(len(name.split()) <= 3 for name in {*names})
    return short and len({*names}) <= _MOST and all(len({*one}) == len(one) for one in lists)
