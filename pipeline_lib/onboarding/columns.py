"""Describes columns: words or numbers, few distinct values or many."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.kinds.kind import finite_number
from pipeline_lib.tables.contents import Content

MAX_CLASSES = 200
FEW = 20
"""The most distinct whole numbers that may be classes."""
_SAMPLE = 20_000
"""The most values of a column that are examined one by one, sampled from all of it."""
NEARLY_ALL = 0.95
"""If more values than this share are numbers, the others are faults of single rows."""
_NOTATIONS = {
    "decimal commas": (re.compile(r"-?\d+(,\d+)?"), ","),
    "percent signs": (re.compile(r"-?\d+([.,]\d+)? ?%"), "%"),
}
"""Numbers that Python does not read, and the sign that at least one of them has."""
_EAST_ASIAN = re.compile("[\u2e80-\U0010ffff]")
"""A character of a script of East Asia."""


@dataclass(frozen=True)
class Column:
    """A description of a column.

    :ivar filled: rows with a value; :ivar distinct: distinct values; both over all rows.

    The others describe a sample: :ivar numbers: whether all values are numbers, be it with decimal commas or percent
    signs; :ivar whole: whether these are whole; :ivar words: average number of words per value, split at spaces;
    :ivar letters: average number of characters in scripts without spaces between words.
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
        """Describe a column, whose values are given as text."""
        values = pc.utf8_trim_whitespace(column)
        values = values.filter(pc.not_equal(values, ""))
        sample = _sample(values).to_pylist()
        numbers = [finite_number(value) for value in sample]
        numeric = bool(sample) and all(value is not None for value in numbers)
        count = max(len(sample), 1)
        return cls(
            name,
            len(values),
            pc.count_distinct(values).as_py(),
            numeric or notation(sample) is not None,
            numeric and all(value == int(value) for value in numbers),
            sum(len(value.split()) for value in sample) / count,
            sum(len(_EAST_ASIAN.findall(value)) for value in sample) / count,
        )

    @property
    def is_text(self) -> bool:
        """Whether its values read like texts: several words, mostly distinct values."""
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
            return False  # numbers that identify rows
        return self.numbers or self.distinct <= min(MAX_CLASSES, max(2, self.filled // 3))


def notation(values: Sequence[str]) -> str | None:
    """Return the name of a notation in which values are numbers that Python does not read."""
    for name, (pattern, sign) in _NOTATIONS.items():
        matches = [value for value in values if pattern.fullmatch(value)]
        if len(matches) > NEARLY_ALL * len(values) and any(sign in value for value in matches):
            return name
    return None


def _sample(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values from all over a column, since files may be sorted by label or by source."""
    if len(values) <= _SAMPLE:
        return values
    # Drawn at random: every n-th row would be of the same class if classes alternate.
    rows = np.random.default_rng(1).choice(len(values), _SAMPLE, replace=False)
    return values.take(pa.array(np.sort(rows)))


def look_at(contents: dict[str, Content]) -> list[Column]:
    """Describe the columns of the training file, or of the only file."""
    content = next(iter(contents.values()))
    names = (name for name in content.names if name not in content.lists)
    return [Column.of(name, content.table[name]) for name in names]
