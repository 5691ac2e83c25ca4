"""The lines of a text file or of standard input, for commands that read a sentence per line."""

import io
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.unicode import as_utf8


def read_lines(file: Path | None) -> Iterator[str]:
    """Yield lines as they are read, without their line ends (LF or CRLF).

    Texts contain characters (U+2028, U+0085, form feed) that ``str.splitlines`` and Python's
    universal newlines treat as line ends.

    :param file: UTF-8, with or without a byte order mark; None: standard input.
    :raises DistilleryError: if it cannot be read, or is not UTF-8.
    """
    name = file or "standard input"
    try:
        with _open(file) as stream:
            for number, line in enumerate(stream, 1):
                text = line.removesuffix("\n").removesuffix("\r")
                text = text.removeprefix("\ufeff") if number == 1 else text
                yield as_utf8(text, f"{name}: line {number}")
    except OSError as error:
        raise DistilleryError(f"{name}: cannot be read ({error.strerror}).") from error


def _open(file: Path | None) -> Any:
    if file is not None:
        return file.open(encoding="utf-8", errors="surrogateescape", newline="\n")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    return nullcontext(sys.stdin)
