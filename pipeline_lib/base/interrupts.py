"""Ctrl-C and SIGTERM end a stage or command with one line, even while its modules are imported."""

import multiprocessing
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType

MESSAGE = "interrupted: what is finished is kept. Run again to go on."
STATUS, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
"""The exit statuses of programs that SIGINT and SIGTERM ended, by the shells' convention."""
unfinished: set[Path] = set()
"""Files and folders that this process is writing under temporary names."""
_received: int | None = None


def end_quietly() -> None:
    """Print one line instead of a traceback if the program is interrupted from now on.

    SIGTERM, with which schedulers and `kill` end a process, is an interrupt like Ctrl-C.
    """
    if multiprocessing.parent_process() is not None:
        # A worker, which has imported its parent's module: it ends at once, and its parent says so.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        return
    usual = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt) or was_interrupted():
            end_interrupted()
        else:
            usual(kind, error, traceback)

    sys.excepthook = hook
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    for number, handler in defaults.items():
        # Not where it is ignored, or a host such as Ray has a handler; nor in a thread.
        with suppress(ValueError):
            if signal.getsignal(number) == handler:
                signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _received
    _received = number
    raise KeyboardInterrupt


def was_interrupted() -> bool:
    """Whether an interrupt has come: a library that it stops half-way may raise another error."""
    return _received is not None


def interrupted_status() -> int:
    """Return the exit status of this program, which was interrupted."""
    return TERMINATED if _received == signal.SIGTERM else STATUS


def delete_unfinished(path: Path) -> None:
    """Delete a temporary file or folder, if there is one."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    unfinished.discard(path)


def end_interrupted() -> None:
    """Print the line, and end this process at once."""
    with suppress(ValueError):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    # The interrupt may have come just before a block that deletes one, or within it.
    for path in tuple(unfinished):
        delete_unfinished(path)
    sys.stderr.write(f"{MESSAGE}\n")
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    # Not sys.exit: threads of a pool whose workers were killed complain at the end.
    os._exit(interrupted_status())
