"""A table of results, declared once by its columns, and its forms: Markdown, plain values, and the terminal's.

:mod:`pipeline_lib.results.terminal` prints it; the page shows its plain values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pipeline_lib.results.markdown import escape, one_line
from pipeline_lib.results.markdown import table as markdown_table
from pipeline_lib.results.schema import Gain

NONE = "–"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    :ivar value: the cell of a line's subject, ready to print; None if it has none.
    :ivar breaks: whether a narrow terminal begins another table with it.
    """

    head: str
    value: Callable[[Any], str | None]
    when: bool = True
    breaks: bool = False


@dataclass(frozen=True)
class Table:
    """A line per system, ready to print.

    :ivar header: the head of each column; heads and cells may have two lines of text.
    :ivar lines: the cells; the first one names what the line is about.
    :ivar breaks: the columns before which a narrow terminal begins another table.
    """

    title: str
    header: list[str]
    lines: list[list[str]]
    caption: list[str] = field(default_factory=list)
    breaks: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        title: str,
        names: Sequence[str],
        subjects: Sequence[Any],
        columns: Sequence[Column],
        caption: Sequence[str] = (),
    ) -> Self:
        """Return a line per subject; a column in which none has a value is left out."""
        cells = [[column.value(subject) for subject in subjects] if column.when else [] for column in columns]
        shown = [(column, values) for column, values in zip(columns, cells, strict=True) if any(values)]
        lines = [[name, *(values[i] or NONE for _, values in shown)] for i, name in enumerate(names)]
        breaks = tuple(i for i, (column, _) in enumerate(shown, 1) if column.breaks and i > 1)
        return cls(title, ["System", *(column.head for column, _ in shown)], lines, list(caption), breaks)

    def markdown(self) -> list[str]:
        """Return its lines in Markdown; what comes from data is no markup."""
        header = [escape(head) for head in self.header]
        lines = [[escape(first), *map(_cell, cells)] for first, *cells in self.lines]
        captioned = ["", *(f"- {escape(line)}" for line in self.caption)] if self.caption else []
        return [*markdown_table(header, lines), *captioned]

    def section(self, marks: str) -> list[str]:
        """Return its lines in Markdown below its title, which follows ``marks``, such as ``##``."""
        return [f"{marks} {escape(self.title)}", "", *self.markdown(), ""]

    def plain(self) -> dict[str, Any]:
        """Return it for JSON: ``title``, ``header``, ``rows``, ``caption``, ``breaks``."""
        rows = [[one_line(cell) for cell in cells] for cells in self.lines]
        header = [one_line(head) for head in self.header]
        plain = {"title": self.title, "header": header, "rows": rows, "caption": self.caption}
        return plain | {"breaks": [*self.breaks]}


def _cell(cell: str) -> str:
    """Return a cell in Markdown; figures have brackets, which are no markup where no text but a p is."""
    return escape(cell) if any(map(str.isalpha, cell.replace(" p ", ""))) else one_line(cell)


def percent(value: float | None) -> str:
    """Return a share in percent."""
    return NONE if value is None else f"{100 * value:.1f}"


def signed(value: float, factor: float = 100, digits: int = 1) -> str:
    """Return a difference of shares in points, or with factor 1 as it is."""
    # Rounded first, so that a difference of -0.0001 reads +0.0 and not -0.0.
    return f"{round(factor * value, digits) + 0.0:+.{digits}f}"


def gain_cell(gain: Gain | None, factor: float = 100, digits: int = 1) -> str | None:
    """Return a gain, its p, and in a second line its interval; one seed has neither, as its noise is unknown."""
    if gain is None:
        return None
    value, low, high = (v if v is None else signed(v, factor, digits) for v in (gain.difference, gain.low, gain.high))
    return value if None in (low, high, gain.p_holm) else f"{value} p {p_value(gain.p_holm)}\n[{low}, {high}]"


def p_value(p: float) -> str:
    """Return a p-value as text; the smallest ones are shown as a bound."""
    return "≤0.001" if p <= 0.001 else f"{p:.3f}"


def multiple(value: float) -> str:
    """Return how many times as much."""
    return f"{value:.0f}×" if value >= 10 else f"{value:.1f}×"


def significant(value: float) -> str:
    """Return a timing with three significant digits: it has no more."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


def megabytes(size: int) -> str:
    """Return a number of bytes in MB, with two significant digits below 10."""
    return f"{size / 1e6:.2g}" if size < 9.95e6 else f"{size / 1e6:,.0f}"
