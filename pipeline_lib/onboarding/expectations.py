"""What to expect of students, before anything is trained: figures that were measured, kept as data.

They are from benchmarks/results/few_rows.md and benchmarks/README.md: English sentences of two classes.
"""

_ALONE = {300: (5, 11), 1000: (5, 9)}
"""By labelled rows: points that a BiLSTM or a mean of word vectors is below its teacher, from the
lowest to the highest that was measured."""
_WITH_TEXTS = (2, 7)
"""The same with 2,000 to 4,500 texts of the task's own kind, for 300 to 1,000 rows."""
_TEXTS = 1000
"""From so many texts on, they count."""
_RANGE = (150, 2000)
"""Labelled rows of which these figures tell something."""


def expectation(kind: str, rows: int, texts: int) -> str | None:
    """Return how far below their teacher students are likely to be; None if nothing was measured.

    :param kind: of the task; :param rows: labelled ones; :param texts: those without a label.
    """
    if kind != "classification" or not _RANGE[0] <= rows <= _RANGE[1]:
        return None
    nearest = min(_ALONE, key=lambda known: max(known / rows, rows / known))
    alone, with_texts = ("{} to {}".format(*points) for points in (_ALONE[nearest], _WITH_TEXTS))
    if texts >= _TEXTS:
        return f"{rows:,} rows and {texts:,} texts without labels: students some {with_texts} points below the teacher"
    return (
        f"{rows:,} rows: students some {alone} points below the teacher; with 2,000 texts without "
        f"labels, some {with_texts}"
    )
