"""Progress with rate and time left: a bar in a terminal, a line every few seconds in a log.

For `distill run`, which shows the stages' progress itself, it is a record per update.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

LOG_SECONDS = 20.0
RECORDS = "POTSTILL_PROGRESS"
"""The environment variable that asks for records."""
_RECORD_SECONDS = 0.25


class Advance(Protocol):
    """Reports to the display how much is done."""

    def __call__(self, done: int, total: int, note: str = "", counted: int | None = None) -> None:
        """Show ``done`` of ``total``; the rate is that of ``counted`` (by default ``done``)."""


@contextmanager
def show_progress(title: str, unit: str) -> Iterator[Advance]:
    """Yield the function to report progress to."""
    console = Console(file=sys.stdout)
    if os.environ.get(RECORDS):
        shown = _records(unit)
    else:
        shown = _bar(console, title, unit) if console.is_terminal else _lines(title, unit)
    with shown as advance:
        yield advance


@contextmanager
def _records(unit: str) -> Iterator[Advance]:
    """Print a line per update that starts with a record separator; its fields have tabs between."""
    start, last = time.monotonic(), 0.0

    def advance(done: int, total: int, note: str = "", counted: int | None = None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _RECORD_SECONDS and done < total:
            return
        last = now
        pace = _pace(done, total, done if counted is None else counted, start, unit)
        print(f"\x1e{done}\t{total}\t{pace}\t{note}", flush=True)

    yield advance


@contextmanager
def _bar(console: Console, title: str, unit: str) -> Iterator[Advance]:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}", markup=False),
        TextColumn("{task.fields[note]}", markup=False),
    )
    start = time.monotonic()
    with Progress(*columns, console=console, refresh_per_second=4) as progress:
        task = progress.add_task(title, total=None, pace="", note="")

        def advance(done: int, total: int, note: str = "", counted: int | None = None) -> None:
            pace = _pace(done, total, done if counted is None else counted, start, unit)
            progress.update(task, completed=done, total=total, pace=pace, note=note)

        yield advance


@contextmanager
def _lines(title: str, unit: str) -> Iterator[Advance]:
    start = last = time.monotonic()

    def advance(done: int, total: int, note: str = "", counted: int | None = None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < LOG_SECONDS and done < total:
            return
        last = now
        pace = _pace(done, total, done if counted is None else counted, start, unit)
        print(f"{title}: {done:,}/{total:,} {pace} {note}".rstrip(), flush=True)

    yield advance


def _pace(done: int, total: int, counted: int, start: float, unit: str) -> str:
    """Return the rate and the time left; work that was reused (not ``counted``) took no time."""
    passed = max(1e-9, time.monotonic() - start)
    rate, left = counted / passed, passed * (total - done) / max(1, counted)
    return f"{rate:,.{1 if rate < 10 else 0}f} {unit}/s, {left:.0f} s left"
