"""A table of results as text, and two of its forms: Markdown and plain values.

:mod:`pipeline_lib.results.terminal` prints the same tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pipeline_lib.results.markdown import bullets, escape, one_line
from pipeline_lib.results.markdown import table as markdown_table


@dataclass(frozen=True)
class Table:
    """A line per system, ready to print.

    :ivar header: the head of each column; heads and cells may have two lines of text.
    :ivar lines: the cells; the first one names what the line is about.
    :ivar caption: sentences.
    :ivar breaks: the columns before which a narrow terminal begins another table.
    """

    title: str
    header: list[str]
    lines: list[list[str]]
    caption: list[str] = field(default_factory=list)
    breaks: tuple[int, ...] = ()

    @classmethod
    def of_columns(cls, title: str, systems: Sequence[str], *groups: Mapping[str, Sequence[str]]) -> Self:
        """Return a table from its columns, by their heads.

        :param groups: what a narrow terminal shows in tables of their own.
        """
        columns = {"System": systems} | {k: v for group in groups for k, v in group.items()}
        lines = [list(cells) for cells in zip(*columns.values(), strict=True)]
        starts = [1 + sum(map(len, groups[:number])) for number in range(1, len(groups))]
        return cls(title, list(columns), lines, breaks=tuple(starts))

    def markdown(self) -> list[str]:
        """Return its lines in Markdown; what comes from data is no markup."""
        header = [escape(head) for head in self.header]
        lines = [[escape(first), *map(_cell, cells)] for first, *cells in self.lines]
        captioned = ["", *bullets(map(escape, self.caption))] if self.caption else []
        return [*markdown_table(header, lines), *captioned]

    def plain(self) -> dict[str, Any]:
        """Return it for JSON: ``title``, ``header``, ``rows`` and ``caption``."""
        rows = [[one_line(cell) for cell in cells] for cells in self.lines]
        header = [one_line(head) for head in self.header]
        return {"title": self.title, "header": header, "rows": rows, "caption": self.caption}


def _cell(cell: str) -> str:
    """Return a cell in Markdown; figures have brackets, which are no markup where no text is."""
    return escape(cell) if any(map(str.isalpha, cell)) else one_line(cell)
