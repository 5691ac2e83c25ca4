"""Keys that params.yaml had in earlier versions, and what to use instead of each."""

from fnmatch import fnmatchcase

REMOVED: dict[str, str] = {"teachers.*.tuning.floor": "probabilities below 0.0001 are raised to it; remove the key"}
"""By pattern of the dotted key (``*`` for a row's name): what to use instead."""


def instead_of(key: str) -> str | None:
    """Return what to use instead of a dotted key; None if there never was such a key."""
    return next((instead for pattern, instead in REMOVED.items() if fnmatchcase(key, pattern)), None)
