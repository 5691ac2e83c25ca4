"""``distill run``: `dvc repro` with a line per stage, the time left, and the results at the end."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from pipeline_lib.base.dvc_leftovers import clear_leftovers
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.workspace import DVC, PIPELINE
from pipeline_lib.results.account import duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from pipeline_lib.commands.planning.forecast import Forecast

EXAMPLE = "Example: distill run evaluate@movies"
_RUNNING = re.compile(r"Running stage '(.+)':")
_SKIPPED = re.compile(r"Stage '(.+)' (?:didn't change, skipping|is cached)")
_NOISE = re.compile(
    r"> python -m |(?:Updating|Generating) lock file|Use `dvc push`|To track the changes with git"
    r"|\tgit add |To enable auto staging|\tdvc config core.autostage|ERROR: failed to reproduce .*failed to run"
)
"""What DVC says besides: the commands it runs, and what it does with its own files."""
_QUIET = "fingerprint"
"""The stage that always runs."""
_LOG_SECONDS = 30.0


def run(
    targets: Annotated[list[str] | None, Argument(help="Stages, such as evaluate@movies; by default all.")] = None,
    verbose: Annotated[bool, Option("--verbose", "-v", help="Show all that the stages print.")] = False,
) -> None:
    """Run the pipeline: what `dvc repro` runs, with a line per stage and the time left; `distill plan` says it before.

    Stages that are up to date are not mentioned. At the end the results are shown. Interrupt it at
    any time: finished work is kept.
    """
    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.commands.planning.forecast import Forecast
    from pipeline_lib.commands.results import results
    from pipeline_lib.params import load_params
    from pipeline_lib.params.profiles import read_values

    load_params()
    console = SafeConsole(soft_wrap=True, highlight=False)
    forecast = Forecast.read(PIPELINE, read_values(Path("params.yaml")), Layout())
    display = Display(console, forecast, verbose)
    for line in clear_leftovers(Path(".")):
        console.print(line)
    start = time.monotonic()
    status = reproduce(targets or [], display)
    if status:
        raise typer.Exit(1)
    if not display.ran:
        console.print("Nothing to do: everything is up to date.")
    else:
        ran = len(display.ran)
        took = duration(time.monotonic() - start)
        console.print(f"{ran} stage{'s' * (ran != 1)} in {took}.\n")
    if not targets:
        results()


def reproduce(targets: list[str], display: "Display") -> int:
    """Run `dvc repro` and pass its lines on; return its exit status.

    An interrupt ends DVC and the stage that it runs, and is then raised.
    """
    from pipeline_lib.base.progress import RECORDS

    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = os.environ | {"PATH": path, "PYTHONUNBUFFERED": "1", RECORDS: "1"}
    process = subprocess.Popen(
        [*DVC, "repro", *targets],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,
    )
    try:
        with display:
            for line in process.stdout:
                display.line(line.rstrip("\n"))
            status = process.wait()
            display.end(status)
        return status
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        # DVC ends at once, the stage in its own way; the pipe ends with the last of them.
        for _ in process.stdout:
            pass
        process.wait()
        raise


@dataclass
class Display:
    """Turns the lines of DVC and its stages into one line per stage.

    As a context, it draws the line of the running stage, on a terminal.

    :ivar ran: the stages that ran, but for the one that always does.
    """

    console: "Console"
    forecast: "Forecast"
    verbose: bool = False
    ran: list[str] = field(default_factory=list)
    _stage: str | None = None
    _start: float = 0.0
    _told: float = 0.0
    _said: list[str] = field(default_factory=list)
    _share: float = 0.0
    _status: "Status | None" = None

    def __enter__(self) -> None:
        if self.console.is_terminal:
            self._status = self.console.status("reading dvc.yaml")
            self._status.start()

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def line(self, line: str) -> None:
        """Take one line of output."""
        if running := _RUNNING.match(line):
            self._finish()
            self._stage, self._said, self._share = running.group(1), [], 0.0
            self._start = self._told = time.monotonic()
            self._draw("")
        elif skipped := _SKIPPED.match(line):
            self._finish()
            self.forecast.skip(skipped.group(1))
        elif line.startswith("\x1e"):
            self._progress(line[1:])
        elif line.strip() and not _NOISE.match(line):
            self._said.append(line)
            if self.verbose or self._stage is None:
                self.console.print(line, markup=False)

    def end(self, status: int) -> None:
        """Finish the last stage; if it failed, print all that it said."""
        if not status:
            self._finish()
        elif not self.verbose:
            if self._stage is not None:
                self.console.print(f"{self._stage} failed:", style="bold red")
            for line in self._said:
                self.console.print(line, markup=False)

    def _progress(self, record: str) -> None:
        done, total, pace, note = record.split("\t")
        self._share = int(done) / max(1, int(total))
        self._draw(f"{self._share:4.0%}  {note}".rstrip())
        now = time.monotonic()
        if not self.console.is_terminal and now - self._told > _LOG_SECONDS:
            self._told = now
            self.console.print(f"{self._stage}: {self._share:.0%}, {pace}", markup=False)

    def _draw(self, text: str) -> None:
        if self._status is not None and self._stage is not None:
            self._status.update(f"{self._stage:<28} {text}  {self._left()}")

    def _left(self) -> str:
        seconds = time.monotonic() - self._start
        left = self.forecast.seconds_left(self._stage, self._share, seconds)
        return f"about {duration(left)} left" if left > 3 else ""

    def _finish(self) -> None:
        if self._stage is None:
            return
        stage, seconds = self._stage, time.monotonic() - self._start
        self.forecast.finish(stage, seconds)
        if stage != _QUIET:
            self.ran.append(stage)
            self._share = 1.0
            lines = list(summary(self._said, stage))
            line = f"{stage:<28} {duration(seconds):>7}  {lines[-1] if lines else ''}".rstrip()
            left = self._left()
            self.console.print(f"{line}{f'  ({left})' if left else ''}", markup=False)
            if not self.verbose:
                for warning in lines[:-1]:
                    self.console.print(f"  {warning}", markup=False)
        self._stage, self._said = None, []


def summary(lines: list[str], stage: str) -> Iterator[str]:
    """Yield the warnings among a stage's lines, then its last line without the task's name."""
    yield from (line for line in lines if line.startswith(("warning", "note")))
    others = [line for line in lines if not line.startswith(("warning", "note", " "))]
    if others:
        yield others[-1].removeprefix(f"{stage.partition('@')[2]}: ")
