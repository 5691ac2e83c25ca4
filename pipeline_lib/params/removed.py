"""Keys that params.yaml had once: each is refused by name, with what to use instead."""

from fnmatch import fnmatchcase

REMOVED: dict[str, str] = {
    "engine.per_training": "one process trains each model; remove the key",
    "tasks.*.submission": "the files of a GLUE submission are named in benchmarks/papers/submission.py; remove the key",
    "teachers.*.tuning.floor": "probabilities below 0.0001 are raised to it; remove the key",
}
"""Dotted key, in which ``*`` stands for any name, to what to use instead."""


def instead_of(key: str) -> str | None:
    """Return what to use instead of a key that is gone; None for one that never was."""
    return next((use for pattern, use in REMOVED.items() if fnmatchcase(key, pattern)), None)
