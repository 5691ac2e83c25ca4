"""What ``distill results`` prints: one wide table, or several if the terminal is narrow."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from pipeline_lib.params import Params
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.headline import headline
from pipeline_lib.results.table import Table
from pipeline_lib.results.tables import all_tables


def print_headlines(console: Console, results: Sequence[TaskResult]) -> None:
    """Print what each task's best student is worth beside its teacher."""
    for result in results:
        console.print(Text(headline(result), "bold"), highlight=False)
    console.print()


def print_result(console: Console, result: TaskResult, params: Params) -> None:
    """Print one task's tables and their captions."""
    for table in all_tables(result, params, timed=True):
        print_table(console, table)


def print_table(console: Console, table: Table) -> None:
    """Print a table, in one piece if it fits, and its caption."""
    whole = len(table.header)
    fits = not table.breaks or _width(table) <= console.width
    starts, ends = ([1], [whole]) if fits else ([1, *table.breaks], [*table.breaks, whole])
    for start, end in zip(starts, ends, strict=True):
        if table.lines and start < end:
            console.print(_columns(table, slice(start, end), None if start > 1 else table.title))
    for line in table.caption:
        console.print(Text(line, "dim"), highlight=False)
    if table.caption:
        console.print()


def _columns(table: Table, columns: slice, title: str | None) -> RichTable:
    # A title has names of tasks and rows only, so it contains no markup.
    shown = RichTable(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    longest = max(len(cells[0]) for cells in table.lines)
    shown.add_column(table.header[0], overflow="fold", min_width=min(24, longest))
    for head in table.header[columns]:
        shown.add_column(head, justify="right", overflow="fold")
    for cells in table.lines:
        # Text is never parsed as markup: a label may contain brackets.
        texts = map(Text, [cells[0], *cells[columns]])
        shown.add_row(*texts, style="bold" if cells[0].startswith("teacher ") else None)
    return shown


def _width(table: Table) -> int:
    """Return a table's width in characters, with two between columns."""
    columns = zip(table.header, *table.lines, strict=True)
    return sum(2 + max(len(line) for cell in c for line in cell.split("\n")) for c in columns)
