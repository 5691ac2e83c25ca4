"""Running stages and commands: an error the user can act on is one line, not a traceback."""

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, NoReturn

import typer
from typer.core import TyperArgument, TyperOption

from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.interrupts import MESSAGE, STATUS, end_interrupted, interrupted_status, was_interrupted
from pipeline_lib.base.stage_records import recorded
from pipeline_lib.base.text import printable

_SMALLER = (
    "Lower `batch_size`, `batch_tokens`, `max_length` or `workers` in params.yaml, or use a larger "
    "machine: what is finished is kept."
)
_LONGEST, _QUOTED = 1600, 800
"""Characters of a line of an error, and how many of them are its start."""


_TYPES = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "path": "PATH", "Path": "PATH", "range": "NUMBER"}
"""Typer's names of types, as a help text says them."""
_typers = getattr(TyperOption, "display_type", None)  # versions before 0.29 show no names


def _plain_type(parameter: TyperOption | TyperArgument, ctx: Any) -> str | None:
    """Return what the help says of a value: its choices, or a word; nothing of a flag, or where a name says it."""
    if getattr(parameter, "is_flag", False) or parameter.metavar:
        return None
    shown = _typers(parameter, ctx).strip("<>").removeprefix("list[").removesuffix("]")
    return _TYPES.get(shown.split()[-1], shown)


TyperOption.display_type = TyperArgument.display_type = _plain_type


def run_stage(main: Callable[..., None]) -> None:
    """Run ``main`` as a Typer command; exit with status 1 and one clear line on an error.

    A stage that succeeds leaves a record: see :mod:`pipeline_lib.base.stage_records`.
    """
    command = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    command.command()(_interruptible(recorded(main)))
    guard(command)


def _interruptible(main: Callable[..., None]) -> Callable[..., None]:
    """Return ``main`` so that an interrupt ends it with one line."""

    @wraps(main)
    def run(**options: Any) -> None:
        try:
            main(**options)
        except KeyboardInterrupt:
            end_interrupted()

    return run


def guard(command: Callable[[], None]) -> None:
    """Call ``command``; print a :class:`PotstillError` in red and exit with status 1.

    Errors of the operating system (path, permission, disk space, memory) are reported likewise, and so is an interrupt.
    A sign that the terminal's encoding lacks is printed as a question mark.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # a stream of a program that runs this as a library
            stream.reconfigure(errors="replace")
    try:
        command()
    except SystemExit as end:
        # Typer makes one of an interrupt outside the command itself, and says nothing.
        if end.code == STATUS:
            sys.stderr.write(f"{MESSAGE}\n")
            sys.exit(interrupted_status())
        raise
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt) or was_interrupted():
            end_interrupted()
        message = _message(error)
        if message is None:
            raise
        _end(message)


def _message(error: Exception) -> str | None:
    """Return what is said of an error that the user can act on; None: it has a traceback."""
    match error:
        case PotstillError():
            return str(error)
        case MemoryError():
            return f"out of memory ({error}). {_SMALLER}"
        case RuntimeError():
            # torch has no error of its own for a processor's memory.
            if "out of memory" in str(error) or "DefaultCPUAllocator" in str(error):
                return f"out of memory ({reason_of(error)}). {_SMALLER}"
        case OSError():
            path = f"{error.filename}: " if error.filename else ""
            return (
                f"{path}{error.strerror or error}. Correct the path, its permissions or the free "
                "space, then run again: finished files are kept."
            )
    return None


def _end(message: str) -> NoReturn:
    from pipeline_lib.base.console import SafeConsole

    SafeConsole(stderr=True, soft_wrap=True).print("error:", style="bold red", end=" ")
    # A value that is quoted may be a whole file; the remedy is at the end.
    lines = (
        line if len(line) <= _LONGEST else f"{line[:_QUOTED]} … {line[_QUOTED - _LONGEST :]}"
        for line in printable(message).split("\n")
    )
    sys.stderr.write("\n".join(lines) + "\n")
    sys.exit(1)
