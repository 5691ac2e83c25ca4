"""The faults of people's files: each is worded once, whoever reads the file."""

from collections.abc import Sequence

from pipeline_lib.base.errors import PotstillError

SHOWN_NAMES = 20
"""How many columns an error lists before the rest is only counted."""


def no_column(where: str, name: str, columns: Sequence[str], remedy: str) -> PotstillError:
    """Return the error for a missing column.

    :param columns: those that are there; :param remedy: how to name another one.
    """
    there = ", ".join(map(repr, columns[:SHOWN_NAMES])) or "none"
    there += f" and {len(columns) - SHOWN_NAMES:,} more" if len(columns) > SHOWN_NAMES else ""
    return PotstillError(f"{where}: no column {name!r}; there are {there}. {remedy}".rstrip())


def check_once(where: str, names: Sequence[str]) -> None:
    """Reject a file in which several columns have the same name."""
    for name in names:
        if names.count(name) > 1:
            raise PotstillError(
                f"{where}: column {name!r} occurs {names.count(name)} times. Give each column a name of its own."
            )


def no_rows(where: str) -> PotstillError:
    """Return the error for a file without rows."""
    return PotstillError(f"{where}: no rows. Put texts into it, one per row.")


def undecodable(where: str, encoding: str) -> PotstillError:
    """Return the error for text that is not of its encoding."""
    return PotstillError(f"{where}not {encoding.upper()}. Save the file as UTF-8, or name its encoding.")


def not_json(where: str, reason: str) -> PotstillError:
    """Return the error for a row that is not JSON."""
    return PotstillError(f"{where} is not valid JSON ({reason}). Write one object per line, or an array of objects.")
