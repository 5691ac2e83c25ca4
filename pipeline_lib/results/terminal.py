"""What ``distill results`` prints: one wide table, or two if the terminal is narrow."""

from collections.abc import Sequence
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from pipeline_lib.params import Params
from pipeline_lib.results.captions import caption, speed_notes
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.detail_tables import calibration, notes, routing, speeds, steps
from pipeline_lib.results.further_tables import further_tables
from pipeline_lib.results.headline import headline
from pipeline_lib.results.table import Table
from pipeline_lib.results.table_rows import TRAINING, scores_table

QUALITY = {
    "dev": "Dev",
    "test": "Test",
    "gain_with_interval": "Gain",
    "to_teacher": "To\nteacher",
    "agreement": "Agree",
}
SIZE = {"parameters": "Params, M\nw/o / with", "ratio": "Smaller\nw/o / with", "speed": "Sent./s", "speed_up": "Faster"}
"""Fields of a :class:`~pipeline_lib.results.table_rows.TableLine`, and their heads."""


def print_headlines(console: Console, results: Sequence[TaskResult]) -> None:
    """Print what each task's best student is worth beside its teacher."""
    for result in results:
        console.print(Text(headline(result), "bold"), highlight=False)
    console.print()


def print_result(console: Console, result: TaskResult, params: Params) -> None:
    """Print one task's tables and their captions."""
    split = result.scores.decisive_split
    quality = QUALITY | {"gain_with_interval": f"Gain ({split})"}
    title = f"{result.task}: {result.scores.metric}, gain on {split}"
    print_table(console, scores_table(result, title, quality, SIZE))
    training = scores_table(result, "", TRAINING)
    captioned = [*caption(result, params), *speed_notes(result)]
    print_table(console, replace(training, caption=captioned))
    for table in (speeds(result), steps(result), calibration(result), routing(result, timed=True)):
        if table is not None:
            print_table(console, table)
    _print_lines(console, notes(result, timed=True))
    for table in further_tables(result, timed=True):
        print_table(console, table)


def print_table(console: Console, table: Table) -> None:
    """Print a table, in one piece if it fits, and its caption."""
    whole = len(table.header)
    fits = not table.breaks or _width(table) <= console.width
    starts, ends = ([1], [whole]) if fits else ([1, *table.breaks], [*table.breaks, whole])
    for start, end in zip(starts, ends, strict=True):
        if table.lines and start < end:
            console.print(_part(table, slice(start, end), None if start > 1 else table.title))
    if table.caption:
        _print_lines(console, table.caption)


def _part(table: Table, columns: slice, title: str | None) -> RichTable:
    # A title has names of tasks and rows only, so it contains no markup.
    part = RichTable(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    longest = max(len(cells[0]) for cells in table.lines)
    part.add_column(table.header[0], overflow="fold", min_width=min(24, longest))
    for head in table.header[columns]:
        part.add_column(head, justify="right", overflow="fold")
    for cells in table.lines:
        # Text is never parsed as markup: a label may contain brackets.
        shown = map(Text, [cells[0], *cells[columns]])
        part.add_row(*shown, style="bold" if cells[0].startswith("teacher ") else None)
    return part


def _width(table: Table) -> int:
    """Return a table's width in characters, with two between columns."""
    columns = zip(table.header, *table.lines, strict=True)
    return sum(2 + max(len(line) for cell in c for line in cell.split("\n")) for c in columns)


def _print_lines(console: Console, lines: list[str]) -> None:
    for line in lines:
        console.print(Text(line, "dim"), highlight=False)
    console.print()
