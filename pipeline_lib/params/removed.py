"""Keys that params.yaml had once: each is refused by name, with what to use instead."""

from fnmatch import fnmatchcase

REMOVED: dict[str, str] = {
    "tasks.*.added_labels": "list the file in `source.files.train`, as in [train.csv, more.csv]",
    "transfer.*.substitution": "words are masked or replaced by part of speech: use `p_mask` and `p_pos`",
}
"""Dotted key, in which ``*`` stands for any name, to what to use instead."""


def instead_of(key: str) -> str | None:
    """Return what to use instead of a key that is gone; None for one that never was."""
    return next((use for pattern, use in REMOVED.items() if fnmatchcase(key, pattern)), None)
