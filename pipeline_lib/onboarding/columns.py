"""What columns hold: words, numbers, few different values or many."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.onboarding.contents import Content

MOST_CLASSES = 200
FEW = 20
"""Different whole numbers that may be classes."""
_SAMPLE = 20_000
"""Values, of all over a column, that are looked at one by one."""
_IDEOGRAPHS = 0x2E80
"""The first sign of the scripts of East Asia."""


@dataclass(frozen=True)
class Column:
    """What a column holds.

    :ivar filled: rows with a value; :ivar distinct: different values, of all rows both.

    The others are about a sample: :ivar numbers: whether all values are numbers; :ivar whole:
    whether these are whole; :ivar words: of a value, parted by blanks, on average; :ivar letters:
    of a script that has none between words.
    """

    name: str
    filled: int
    distinct: int
    numbers: bool
    whole: bool
    words: float
    letters: float

    @classmethod
    def of(cls, name: str, column: pa.ChunkedArray) -> "Column":
        """Look at a column, whose values are texts."""
        values = pc.utf8_trim_whitespace(column)
        values = values.filter(pc.not_equal(values, ""))
        given = _sample(values).to_pylist()
        found = [number(value) for value in given]
        numeric = bool(given) and all(value is not None for value in found)
        count = max(len(given), 1)
        return cls(
            name,
            len(values),
            pc.count_distinct(values).as_py(),
            numeric,
            numeric and all(value == int(value) for value in found),
            sum(len(value.split()) for value in given) / count,
            sum(ord(sign) > _IDEOGRAPHS for value in given for sign in value) / count,
        )

    @property
    def is_text(self) -> bool:
        """Whether its values read like texts: several words, mostly different ones."""
        repeated = self.distinct <= max(2, 0.05 * min(self.filled, _SAMPLE))
        return not self.numbers and not repeated and (self.words >= 2.5 or self.letters >= 4)

    @property
    def is_label(self) -> bool:
        """Whether its values can be classes or scores."""
        if self.distinct < 2:
            return False
        if self.numbers and not self.whole:
            return True
        if self.numbers and self.distinct > 0.9 * self.filled > FEW:
            return False  # numbers that tell the rows apart
        return self.numbers or self.distinct <= min(MOST_CLASSES, max(2, self.filled // 3))


def number(value: str) -> float | None:
    """Return a value as a finite number, or None."""
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _sample(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values of all over a column: files are sorted by label, or by source, at times."""
    if len(values) <= _SAMPLE:
        return values
    # Drawn, as every n-th row would be of one class where classes take turns.
    rows = np.random.default_rng(1).choice(len(values), _SAMPLE, replace=False)
    return values.take(pa.array(np.sort(rows)))


def look_at(contents: dict[str, Content]) -> list[Column]:
    """Describe the columns of the training file, or of the file that all is in."""
    content = next(iter(contents.values()))
    return [Column.of(name, content.table[name]) for name in content.names]
