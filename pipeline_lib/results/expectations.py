"""What students of few labelled rows reached on sets of several kinds of text: what was seen, not a promise.

Six sets of short English texts: what a question asks for, topics, intents, and opinions in reviews, editorials and
tweets (benchmarks/few_rows.md).
"""

import math
from typing import NamedTuple


class Seen(NamedTuple):
    """The lowest and highest over the sets, in points of accuracy, with so many labelled rows.

    :ivar above: of the student that a run chose above the better regression on labels; :ivar below: below its teacher.
    """

    rows: int
    above: tuple[float, float]
    below: tuple[float, float]

    def __str__(self) -> str:
        above, below = (f"{low:.0f} to {high:.0f}" for low, high in (self.above, self.below))
        return (
            f"with {self.rows:,} labelled rows of six sets, the student was {above} points better than a regression, "
            f"and {below} below its teacher"
        )


SEEN = (Seen(100, (-1.0, 16.0), (4.0, 14.0)), Seen(300, (0.0, 13.0), (3.0, 15.0)), Seen(1000, (0.0, 9.0), (2.0, 13.0)))


def expected(rows: int) -> Seen | None:
    """Return what was seen with about as many labelled rows; None if they are far fewer, or more."""
    nearest = min(SEEN, key=lambda seen: abs(math.log(max(rows, 1) / seen.rows)))
    return nearest if 0.5 <= rows / nearest.rows <= 2.0 else None
