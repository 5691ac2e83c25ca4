"""Progress with rate and time left: a bar in a terminal, a line every few seconds in a log.

For `distill run`, which shows the stages' progress itself, it is a record per update.
"""

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from pipeline_lib.base.console import SafeConsole
from pipeline_lib.base.text import printable

LOG_SECONDS = 20.0
RECORDS = "POTSTILL_PROGRESS"
_RECORD_SECONDS = 0.25


class Advance(Protocol):
    """Reports to the display how much is done."""

    def __call__(self, done: int, total: int, note: str = "", counted: int | None = None) -> None:
        """Show ``done`` of ``total``; the rate is that of ``counted`` (by default ``done``)."""


@contextmanager
def show_progress(title: str, unit: str, err: bool = False) -> Iterator[Advance]:
    """Yield the function to report progress to."""
    stream = sys.stderr if err else sys.stdout
    console, start = SafeConsole(file=stream), time.monotonic()
    last, seconds = -math.inf, 0.0
    if os.environ.get(RECORDS):
        shown, seconds = nullcontext(_print_record), _RECORD_SECONDS
    elif console.is_terminal:
        shown = _bar(console, title)
    else:
        shown, seconds, last = nullcontext(partial(_print_line, stream, title)), LOG_SECONDS, start
    with shown as show:

        def advance(done: int, total: int, note: str = "", counted: int | None = None) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last < seconds and done < total:
                return
            last = now
            pace = _pace(done, total, done if counted is None else counted, start, unit)
            show(done, total, pace, printable(note))

        yield advance


def _print_record(done: int, total: int, pace: str, note: str) -> None:
    """Print a line that starts with a record separator; its fields have tabs between."""
    print(f"\x1e{done}\t{total}\t{pace}\t{note}", flush=True)


def _print_line(stream: TextIO, title: str, done: int, total: int, pace: str, note: str) -> None:
    print(f"{title}: {done:,}/{total:,} {pace} {note}".rstrip(), file=stream, flush=True)


@contextmanager
def _bar(console: Console, title: str) -> Iterator[Callable[[int, int, str, str], None]]:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}", markup=False),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, refresh_per_second=4) as progress:
        task = progress.add_task(title, total=None, pace="", note="")

        def show(done: int, total: int, pace: str, note: str) -> None:
            progress.update(task, completed=done, total=total, pace=pace, note=note)

        yield show


def _pace(done: int, total: int, counted: int, start: float, unit: str) -> str:
    """Return the rate and the time left; work that was reused (not ``counted``) took no time."""
    passed = max(1e-9, time.monotonic() - start)
    rate, left = counted / passed, passed * (total - done) / max(1, counted)
    return f"{rate:,.{1 if rate < 10 else 0}f} {unit}/s, {left:.0f} s left"
