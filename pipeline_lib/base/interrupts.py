"""Ctrl-C ends a stage or command with one line, even while its modules are imported."""

import sys
from types import TracebackType

MESSAGE = "interrupted: what is finished is kept. Run again to go on."
STATUS = 128 + 2
"""The exit status of a program that SIGINT ended, by the shells' convention."""


def end_quietly() -> None:
    """Print one line instead of a traceback if the program is interrupted from now on."""
    usual = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.stderr.write(f"{MESSAGE}\n")
        else:
            usual(kind, error, traceback)

    sys.excepthook = hook
