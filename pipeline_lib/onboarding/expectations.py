"""What to expect of students, before anything is trained: figures that were measured, kept as data.

They are from benchmarks/results/few_rows.md and benchmarks/README.md: English sentences of two
classes.
"""

from typing import NamedTuple


class _Below(NamedTuple):
    """Points that a BiLSTM or a mean of word vectors is below its teacher, lowest and highest.

    :ivar alone: without texts of one's own; :ivar with_texts: with some 2,000 of them.
    """

    alone: tuple[int, int]
    with_texts: tuple[int, int]


_BY_ROWS = {
    100: _Below((6, 14), (5, 10)),
    300: _Below((5, 11), (3, 6)),
    1000: _Below((5, 9), (2, 5)),
}
"""By labelled rows."""
_TEXTS = 1000
"""From so many texts on, they count."""
_RANGE = (50, 2000)
"""Labelled rows of which the nearest figures tell something."""


def expectation(kind: str, rows: int, texts: int) -> str | None:
    """Return how far below their teacher students are likely to be; None if nothing was measured.

    :param kind: of the task; :param rows: labelled ones; :param texts: those without a label.
    """
    if kind != "classification" or not _RANGE[0] <= rows <= _RANGE[1]:
        return None
    nearest = min(_BY_ROWS, key=lambda known: max(known / rows, rows / known))
    alone, with_texts = ("{} to {}".format(*points) for points in _BY_ROWS[nearest])
    if texts >= _TEXTS:
        return (
            f"{rows:,} rows and {texts:,} texts without labels: students some {with_texts} points "
            "below the teacher"
        )
    return (
        f"{rows:,} rows: students some {alone} points below the teacher; with 2,000 texts without "
        f"labels, some {with_texts}"
    )
