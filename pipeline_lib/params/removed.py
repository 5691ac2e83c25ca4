"""Keys that params.yaml had once: each is refused by name, with what to use instead."""

from fnmatch import fnmatchcase

REMOVED: dict[str, str] = {
    "catalogues.*.storage": "vectors are kept in float16",
    "retrieval.*.source.qrels": "give the pairs as a task, or evaluate an exported encoder with sentence-transformers",
    "retrieval.*.systems.*.dimensions": "vectors are compared whole",
    "retrieval.*.systems.*.documents": "one encoder embeds both; compare its model by `kind: model`",
    "retrieval.*.systems.*.storage": "vectors are compared in float32",
}
"""Dotted key, in which ``*`` stands for any name, to what to use instead."""


def instead_of(key: str) -> str | None:
    """Return what to use instead of a key that is gone; None for one that never was."""
    return next((use for pattern, use in REMOVED.items() if fnmatchcase(key, pattern)), None)
