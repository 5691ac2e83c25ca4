"""The one exception that users are meant to see: what is wrong, where, and the remedy."""

from collections.abc import Callable

LONGEST = 200
"""Of another library's reason, in characters."""


class PotstillError(Exception):
    """An input, a parameter or a file is not usable; the message names it and says what to do."""


def reason_of(error: BaseException) -> str:
    """Return another library's error as part of a line: the first line of what it says.

    A line that ends with a colon is followed by the next one.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if isinstance(error, KeyError):
        return f"unknown key {lines[0]}"[:LONGEST]
    count = 2 if lines[0].endswith(":") else 1
    return " ".join(lines[:count]).rstrip(".:")[:LONGEST]


def faults_of(check: Callable[..., object], *arguments: object) -> list[str]:
    """Return the message of the error that a check raises, as a list; empty if it raises none."""
    try:
        check(*arguments)
    except PotstillError as error:
        return [str(error)]
    return []


DISTRIBUTION = "potstill"
"""The name under which this library is installed, which is not the one that it is imported by."""


def install_extra(extra: str) -> str:
    """Return the command that installs one of the distribution's extras."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
