"""Running stages and commands: an error the user can act on is one line, not a traceback."""

import sys
from collections.abc import Callable
from typing import NoReturn

import typer

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.stage_records import recorded


def run_stage(main: Callable[..., None]) -> None:
    """Run ``main`` as a Typer command; exit with status 1 and one clear line on an error.

    A stage that succeeds leaves a record: see :mod:`pipeline_lib.base.stage_records`.
    """
    command = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    command.command()(recorded(main))
    guard(command)


def guard(command: Callable[[], None]) -> None:
    """Call ``command``; print a :class:`DistilleryError` in red and exit with status 1.

    Errors of the operating system (path, permission, disk space, memory) are reported likewise.
    """
    try:
        command()
    except DistilleryError as error:
        _end(str(error))
    except MemoryError as error:
        _end(f"out of memory ({error}). Lower the sizes in params.yaml, or use a larger machine.")
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        _end(
            f"{path}{error.strerror or error}. Correct the path, its permissions or the free "
            "space, then run again: finished files are kept."
        )


def _end(message: str) -> NoReturn:
    from rich.console import Console

    Console(stderr=True, soft_wrap=True).print("error:", style="bold red", end=" ")
    sys.stderr.write(f"{message}\n")
    sys.exit(1)
