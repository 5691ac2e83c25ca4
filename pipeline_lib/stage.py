"""How a stage or command ends: an error the user can act on is one line, not a traceback."""

import sys
from collections.abc import Callable

import typer
from rich.console import Console

from pipeline_lib.errors import DistilleryError


def run_stage(main: Callable[..., None]) -> None:
    """Run ``main`` as a Typer command; exit with status 1 and one clear line on an error."""
    command = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    command.command()(main)
    guard(command)


def guard(command: Callable[[], None]) -> None:
    """Call ``command``; print a :class:`DistilleryError` in red and exit with status 1."""
    try:
        command()
    except DistilleryError as error:
        Console(stderr=True, soft_wrap=True).print("error:", style="bold red", end=" ")
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
