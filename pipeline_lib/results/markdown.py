"""Writes Markdown in which any part may contain text from data, none of it parsed as markup."""

import re
from collections.abc import Iterable, Sequence

from pipeline_lib.base.text import printable

_MARKUP = re.compile(r"[\\`*\[\]<>|~&$#!{}]|(?<!\w)_|_(?!\w)|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""Characters that start markup, HTML, a formula or a link within a line, or end a table cell."""


def escape(text: str) -> str:
    """Return text from data as one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\g<0>", one_line(text))


def one_line(text: str) -> str:
    """Return text from data with single spaces for line ends, and without orders to a terminal."""
    return printable(" ".join(text.split()))


def code(text: str) -> str:
    """Return text from data as code within a line."""
    line = one_line(text)
    ticks = "`" * (_longest_ticks(line) + 1)
    space = " " if "`" in line else ""
    # A bar would end a table cell even within code.
    return f"{ticks}{space}{line}{space}{ticks}".replace("|", "\\|")


def fenced(text: str, language: str) -> list[str]:
    """Return the lines of a code block."""
    ticks = "`" * max(3, _longest_ticks(text) + 1)
    return [f"{ticks}{language}", *text.rstrip("\n").split("\n"), ticks]


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = True) -> list[str]:
    """Return the lines of a table whose cells are Markdown."""
    rule = ["---"] + ["---:" if numbers else "---"] * (len(header) - 1)
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def _longest_ticks(text: str) -> int:
    return max(map(len, re.findall(r"`+", text)), default=0)
