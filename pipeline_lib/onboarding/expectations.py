"""What to expect of students, before anything is trained: figures that were measured, kept as data.

They are from benchmarks/results/few_rows.md: English sentences of two classes.
"""

from typing import NamedTuple


class _Measured(NamedTuple):
    """Points that the better of BiLSTM and mean of word vectors is below its teacher.

    :ivar alone: without texts of one's own; :ivar with_texts: with some 2,000 of them.
    """

    alone: int
    with_texts: int


_BY_ROWS = {100: _Measured(8, 5), 300: _Measured(6, 4), 1000: _Measured(5, 3)}
"""By labelled rows."""
_TEXTS = 1000
"""From so many texts on, they count as many."""
_RANGE = (50, 2000)
"""Labelled rows of which the nearest figures tell something."""


def expectation(kind: str, rows: int, texts: int) -> str | None:
    """Return how far below their teacher students are likely to be; None if nothing was measured.

    :param kind: of the task; :param rows: labelled ones; :param texts: those without a label.
    """
    if kind != "classification" or not _RANGE[0] <= rows <= _RANGE[1]:
        return None
    nearest = min(_BY_ROWS, key=lambda known: abs(known / rows - rows / known))
    alone, with_texts = _BY_ROWS[nearest]
    if texts >= _TEXTS:
        below = f"students some {with_texts} points below the teacher"
        return f"{rows:,} rows and {texts:,} texts without labels: {below}"
    below = f"students some {alone} points below the teacher"
    return f"{rows:,} rows: {below}; with 2,000 texts without labels, some {with_texts}"
