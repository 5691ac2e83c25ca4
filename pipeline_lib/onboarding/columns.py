"""Which columns are texts, which one is the label, and whether that is a class or a score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from shlex import quote

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.onboarding.contents import Content
from pipeline_lib.onboarding.questions import Ask, Question

TEXTS = (
    *("text", "sentence", "review", "content", "body", "comment", "message", "tweet", "snippet"),
    *("document", "utterance", "review_text", "reviewtext", "input", "post", "description"),
)
"""Usual names of a text column."""
PAIRS = (
    *(("premise", "hypothesis"), ("question", "sentence"), ("query", "passage")),
    *(("query", "document"), ("first", "second"), ("source", "target"), ("anchor", "positive")),
    *(("text", "text_pair"), ("question", "answer"), ("sentence", "sentence_pair")),
)
"""Usual names of a pair's columns."""
CLASSES = (
    *("label", "labels", "class", "category", "target", "sentiment", "polarity", "intent"),
    *("topic", "gold_label", "y", "is_duplicate", "judgement", "spam", "output", "tag"),
)
"""Usual names of a label column whose numbers are classes."""
SCORES = ("score", "rating", "stars", "similarity", "similarity_score", "grade", "points", "value")
"""Usual names of a label column whose numbers may be either."""
NONE = "none"
"""What is answered where no column is the label."""
MOST_CLASSES = 200
_FEW = 20
"""Different whole numbers that may be classes."""
_SAMPLE = 20_000
_IDEOGRAPHS = 0x2E80
"""The first sign of the scripts of East Asia."""
_ENDS = (("a", "b"), ("one", "two"), ("left", "right"))


@dataclass(frozen=True)
class Column:
    """What a column holds.

    :ivar filled: rows with a value; :ivar distinct: different values; :ivar numbers: whether all
        values are numbers; :ivar whole: whether these are whole; :ivar words: of a value, parted by
        blanks, on average; :ivar letters: of a script that has none between words.
    """

    name: str
    filled: int
    distinct: int
    numbers: bool
    whole: bool
    words: float
    letters: float

    @classmethod
    def of(cls, name: str, values: Sequence[str]) -> "Column":
        """Look at a column's values."""
        given = [value for value in values if value]
        found = [number(value) for value in given]
        numeric = bool(given) and all(value is not None for value in found)
        filled = max(len(given), 1)
        return cls(
            name,
            len(given),
            len(set(given)),
            numeric,
            numeric and all(value == int(value) for value in found),
            sum(len(value.split()) for value in given) / filled,
            sum(ord(sign) > _IDEOGRAPHS for value in given for sign in value) / filled,
        )

    @property
    def is_text(self) -> bool:
        """Whether its values read like texts: several words, mostly different ones."""
        repeated = self.distinct <= max(2, 0.05 * self.filled)
        return not self.numbers and not repeated and (self.words >= 2.5 or self.letters >= 4)

    @property
    def is_label(self) -> bool:
        """Whether its values can be classes or scores."""
        if self.distinct < 2:
            return False
        if self.numbers and not self.whole:
            return True
        if self.numbers and self.distinct > 0.9 * self.filled > _FEW:
            return False  # numbers that tell the rows apart
        return self.numbers or self.distinct <= min(MOST_CLASSES, max(2, self.filled // 3))


def number(value: str) -> float | None:
    """Return a value as a finite number, or None."""
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def look_at(contents: dict[str, Content]) -> list[Column]:
    """Describe the columns of the training file, or of the file that all is in."""
    content = next(iter(contents.values()))
    return [Column.of(name, content.values(name)[:_SAMPLE]) for name in content.names]


def choose_texts(
    columns: Sequence[Column],
    contents: dict[str, Content],
    named: Sequence[str],
    label: str | None,
    ask: Ask,
) -> list[str]:
    """Return the text column, or the two of a pair.

    :param named: those that the user named, first; :param label: the label that the user named.
    :raises DistilleryError: if a file lacks one, or no column reads like text.
    """
    if named:
        for name in named:
            _check_there(name, contents, "--text")
        if len(named) > 2:
            raise DistilleryError(f"--text: {len(named)} columns; one is a text, two are a pair.")
        return [*named]
    parts = contents.values()
    columns = [column for column in columns if column.name != label]
    everywhere = [column for column in columns if all(column.name in part.names for part in parts)]
    found = [column.name for column in everywhere if column.is_text]
    if not found:
        raise DistilleryError(
            f"{_where(contents)}: no column reads like text; there are "
            f"{', '.join(column.name for column in columns)}. Name it with --text, or the columns "
            "of a file without header line with --columns."
        )
    second = [c.name for c in everywhere if c.is_text or not (c.numbers or c.is_label)]
    pair = _pair(second, found)
    if pair or len(found) == 1:
        return pair or found
    usual = [name for name in found if name.lower() in TEXTS]
    found = [*usual, *(name for name in found if name not in usual)]
    choices = [*found, *(",".join(two) for two in combinations(found, 2))]
    question = f"{_where(contents)}: several columns read like text. Which is it (two are a pair)?"
    return ask(Question(question, choices, f"--text {quote(found[0])}")).split(",")


def choose_label(
    columns: Sequence[Column],
    contents: dict[str, Content],
    texts: Sequence[str],
    named: str | None,
    needed: bool,
    ask: Ask,
) -> str | None:
    """Return the label column, or None: nothing is labelled.

    :param named: the one that the user named, or :data:`NONE`.
    :param needed: whether there must be one: no teacher's answers are given.
    :raises DistilleryError: if a file lacks it, or no column can be it.
    """
    if named == NONE:
        return None
    if named is not None:
        if not any(named in content.names for content in contents.values()):
            _check_there(named, contents, "--label")
        return named
    # A label may stand in dev and test alone.
    seen = {column.name: column for column in columns}
    for content in contents.values():
        for name in content.names:
            seen.setdefault(name, Column.of(name, content.values(name)[:_SAMPLE]))
    found = [c.name for c in seen.values() if c.name not in texts and c.is_label]
    usual = [name for name in found if _is_usual(name)]
    if len(usual) == 1 or len(found) == 1:
        return (usual or found)[0]
    if not found and not needed:
        return None
    if not found:
        raise DistilleryError(
            f"{_where(contents)}: no column can be the label; there are "
            f"{', '.join(seen)}. Name it with --label; or give a teacher's answers with --teacher "
            "FILE, where nothing is labelled."
        )
    return _without_none(
        ask(
            Question(
                f"{_where(contents)}: which column is the label?",
                [*(usual or found), NONE],
                f"--label {found[0]}",
            )
        )
    )


def choose_kind(name: str, values: Sequence[str], named: str | None, ask: Ask) -> str:
    """Return ``classification`` or ``regression``.

    :param values: the label column's; :param named: what the user said.
    :raises DistilleryError: if there are too many different values for classes.
    """
    if named is not None:
        return named
    column = Column.of(name, values)
    numbers = [value for value in values if number(value) is not None]
    # A few values that are no numbers are faults of single rows.
    numeric = len(numbers) > 0.95 * max(column.filled, 1)
    if not numeric:
        if column.distinct > MOST_CLASSES:
            raise DistilleryError(
                f"column {name!r}: {column.distinct:,} different values are too many for classes. "
                "Name another with --label, or merge them with --labels."
            )
        return "classification"
    whole = all(number(value).is_integer() for value in numbers)
    different = len(set(map(float, numbers)))
    if different <= 2:
        return "classification"
    if not whole or different > _FEW:
        return "regression"
    if name.lower() in CLASSES:
        return "classification"
    low, high = min(map(float, numbers)), max(map(float, numbers))
    return ask(
        Question(
            f"column {name!r}: {different} different whole numbers, {low:g} to {high:g}. Are they "
            "classes, or scores on a scale?",
            ["classification", "regression"],
            "--kind",
        )
    )


def _pair(names: Sequence[str], texts: Sequence[str]) -> list[str] | None:
    """Return two columns whose names belong together, of which one reads like text."""
    lower = {name.lower(): name for name in names}
    pairs = [*PAIRS]
    for name in lower:
        pairs.append((name, name.replace("1", "2", 1)))
        pairs += [(name, name[: -len(a)] + b) for a, b in _ENDS if name.endswith(a)]
    for one, two in pairs:
        if one != two and {one, two} <= lower.keys() and {lower[one], lower[two]} & set(texts):
            return [lower[one], lower[two]]
    return None


def _is_usual(name: str) -> bool:
    return name.lower() in (*CLASSES, *SCORES)


def _without_none(answer: str) -> str | None:
    return None if answer == NONE else answer


def _check_there(name: str, contents: dict[str, Content], flag: str) -> None:
    for content in contents.values():
        if name not in content.names:
            raise DistilleryError(
                f"{content.paths[0]}: no column {name!r}; there are {', '.join(content.names)}. "
                f"Correct {flag}."
            )


def _where(contents: dict[str, Content]) -> str:
    return str(next(iter(contents.values())).paths[0])
