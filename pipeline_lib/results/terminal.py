"""What ``distill results`` prints: one wide table, or two if the terminal is narrow."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline_lib.params import Params
from pipeline_lib.results.captions import caption, speed_notes
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.detail_tables import TextTable, calibration, notes, routing, speeds, steps
from pipeline_lib.results.headline import headline
from pipeline_lib.results.retrieval_tables import MeasuredTable
from pipeline_lib.results.table_rows import NONE, TableLine, rows

WIDE = 116
"""The terminal width that the single wide table needs, in characters."""


def print_headlines(console: Console, results: Sequence[TaskResult]) -> None:
    """Print what each task's best student is worth beside its teacher."""
    for result in results:
        console.print(Text(headline(result), "bold"), highlight=False)
    console.print()


def print_result(console: Console, result: TaskResult, params: Params) -> None:
    """Print one task's table and its caption."""
    split = result.scores.decisive_split
    title = f"{result.task}: {result.scores.metric}, gain on {split}"
    table_rows = rows(result)
    quality = {
        "Dev": [row.dev for row in table_rows],
        "Test": [row.test for row in table_rows],
        f"Gain ({split})": [_gain(row) for row in table_rows],
        "To\nteacher": [row.to_teacher for row in table_rows],
        "Agree": [row.agreement for row in table_rows],
    }
    size = {
        "Params, M\nw/o / with": [row.parameters for row in table_rows],
        "Smaller\nw/o / with": [row.ratio for row in table_rows],
        "Sent./s": [row.speed for row in table_rows],
        "Faster": [row.speed_up for row in table_rows],
    }
    groups = [quality | size] if console.width >= WIDE else [quality, size]
    for i, columns in enumerate(groups):
        console.print(_table(table_rows, columns, None if i else title))
    if methods := [row for row in table_rows if row.rate != NONE]:
        console.print(_table(methods, _training(methods), None))
    _print_lines(console, [*caption(result, params), *speed_notes(result)])
    for table in (speeds(result), steps(result), calibration(result), routing(result, timed=True)):
        if table is not None:
            _print_details(console, table)
    _print_lines(console, notes(result, timed=True))


def _print_lines(console: Console, lines: list[str]) -> None:
    for line in lines:
        console.print(Text(line, "dim"), highlight=False)
    console.print()


def print_measured(console: Console, measurements: MeasuredTable) -> None:
    """Print a table of other measurements, and its caption."""
    table = _box(measurements.title)
    table.add_column(measurements.header[0], overflow="fold")
    for head in measurements.header[1:]:
        table.add_column(head, justify="right", overflow="fold")
    for cells in measurements.rows:
        table.add_row(*map(Text, cells))
    console.print(table)
    _print_lines(console, measurements.caption)


def _print_details(console: Console, details: TextTable) -> None:
    """Print a table besides the scores: in one piece if it fits."""
    whole = {head: cells for part in details.columns for head, cells in part.items()}
    parts = [whole] if _width(details.systems, whole) <= console.width else [*details.columns]
    for number, columns in enumerate(filter(None, parts)):
        table = _empty(details.systems, columns, None if number else details.title)
        for i, system in enumerate(details.systems):
            cells = [system, *(column[i] for column in columns.values())]
            table.add_row(*map(Text, cells), style="bold" if i < details.teachers else None)
        console.print(table)


def _width(systems: list[str], columns: dict[str, list[str]]) -> int:
    """Return a table's width in characters, with two between columns."""
    parts = [systems, *([head, *cells] for head, cells in columns.items())]
    return sum(2 + max(len(line) for cell in part for line in cell.split("\n")) for part in parts)


def _training(methods: list[TableLine]) -> dict[str, list[str]]:
    return {
        "Rate": [row.rate for row in methods],
        "Steps × batch": [row.steps for row in methods],
        "Rows": [row.rows for row in methods],
    }


def _table(table_rows: list[TableLine], columns: dict[str, list[str]], title: str | None) -> Table:
    table = _empty([row.system for row in table_rows], columns, title)
    # Text is never parsed as markup: a label may contain brackets.
    for i, row in enumerate(table_rows):
        cells = [row.system, *(column[i] for column in columns.values())]
        table.add_row(*map(Text, cells), style="bold" if row.is_teacher else None)
    return table


def _empty(systems: list[str], columns: dict[str, list[str]], title: str | None) -> Table:
    """Return a table with its columns and no rows."""
    table = _box(title)
    table.add_column("System", overflow="fold", min_width=min(24, max(map(len, systems))))
    for head in columns:
        table.add_column(head, justify="right", overflow="fold")
    return table


def _box(title: str | None) -> Table:
    # Task names have only letters, digits and underscores, so a title contains no markup.
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _gain(row: TableLine) -> str:
    if row.interval == NONE:
        return row.gain
    return f"{row.gain} p {row.p}\n{row.interval}"
