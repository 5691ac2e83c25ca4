"""Which columns are texts, which is the label, and whether that is a class or a score.

Only a usual name or the only possible column decides; whatever else is open, the user is asked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from shlex import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.kind import finite_number
from pipeline_lib.base.kinds.label_lists import bracketed
from pipeline_lib.onboarding.labels import with_label
from pipeline_lib.onboarding.questions import Ask, Question
from pipeline_lib.tables.contents import Content, counts_up
from pipeline_lib.tables.usual_names import CLASSES, SIDE, bare, says_label, says_text
from pipeline_lib.tables.values import with_types

NONE = "none"
"""The answer if no column is the label."""
MAX_CLASSES = 200
_FEW, _MOST_CHOICES = 20, 6
_SAMPLE = 20_000
"""The most values of a column that are examined one by one, sampled from all of it."""
_NEARLY_ALL = 0.95
"""If more values than this share are numbers, the others are faults of single rows."""
_LABEL_END = re.compile(r"(labels?|class|category|sentiment|intent|emotion|score|rating|stars)$", re.IGNORECASE)
"""The end of longer names of label columns: ``star_rating``, ``airlineSentiment``."""
_PAIRS = {
    ("premise", "hypothesis"), ("first", "second"), ("query", "passage"), ("question", "sentence"),
    ("question", "answer"),
}  # fmt: skip
_OTHER_NUMBER = re.compile(r"-?\d+([.,]\d+)? ?%?")
_DATE = re.compile(
    r"(?=.*\d)(?:(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
    r"|[ap]m|utc|gmt|z|[pmce][sd]t|[\d:.,/+T-]+|\s)+",
    re.IGNORECASE,
)
_EAST_ASIAN = re.compile("[\u2e80-\U0010ffff]")


@dataclass(frozen=True)
class Column:
    """A description of a column.

    :ivar filled: rows with a value; :ivar distinct: distinct values; both over all rows.

    The others describe a sample: :ivar numbers: whether all values are numbers, be it with decimal commas or percent
    signs; :ivar whole: whether these are whole; :ivar dates: whether all are dates or times;
    :ivar lists: or lists; :ivar words: the average
    number of words per value, split at spaces; :ivar letters: that of characters in scripts without spaces in between.
    """

    name: str
    filled: int
    distinct: int
    numbers: bool
    whole: bool
    dates: bool
    lists: bool
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
            numeric or is_misspelt(sample),
            numeric and all(value == int(value) for value in numbers),
            bool(sample) and not numeric and all(_DATE.fullmatch(value) for value in sample),
            bool(sample) and all(bracketed(value) is not None for value in sample),
            sum(len(value.split()) for value in sample) / count,
            sum(len(_EAST_ASIAN.findall(value)) for value in sample) / count,
        )

    @property
    def is_text(self) -> bool:
        """Whether its values read like texts: several words, mostly distinct values."""
        repeated = self.distinct <= max(2, 0.05 * min(self.filled, _SAMPLE))
        return self.can_be_text and not repeated and (self.words >= 2.5 or self.letters >= 4)

    @property
    def can_be_text(self) -> bool:
        """Whether its values are no numbers, dates or lists."""
        return not (self.numbers or self.dates or self.lists)

    @property
    def is_label(self) -> bool:
        """Whether its values can be classes or scores."""
        if self.distinct < 2 or self.dates:
            return False
        if self.numbers and not self.whole:
            return True
        if self.numbers and self.distinct > 0.9 * self.filled > _FEW:
            return False  # numbers that identify rows
        return self.numbers or self.distinct <= min(MAX_CLASSES, max(2, self.filled // 3))


def _sample(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if len(values) <= _SAMPLE:
        return values
    # Drawn at random: every n-th row would be of the same class if classes alternate.
    rows = np.random.default_rng(1).choice(len(values), _SAMPLE, replace=False)
    return values.take(pa.array(np.sort(rows)))


def look_at(contents: dict[str, Content]) -> list[Column]:
    """Describe the columns of all files, each where it occurs first."""
    columns: dict[str, Column] = {}
    for content in contents.values():
        for name in content.names:
            if name not in content.lists and name not in columns:
                columns[name] = Column.of(name, content.table[name])
    return [*columns.values()]


def is_misspelt(values: Sequence[str]) -> bool:
    """Whether values are numbers that Python does not read, with decimal commas or percent signs."""
    matches = [value for value in values if _OTHER_NUMBER.fullmatch(value)]
    return len(matches) > _NEARLY_ALL * len(values) and any("," in value or "%" in value for value in matches)


def choose_texts(
    columns: Sequence[Column],
    contents: dict[str, Content],
    named: Sequence[str],
    label: str | None,
    ask: Ask,
    flag: str | None = None,
) -> list[str]:
    """Return the text column, or the two of a pair.

    :param named: the columns that the user named; :param label: the label that the user named.
    :param flag: how a user names them, instead of with ``--text``.
    """
    if named:
        return _named_texts(named, contents)
    where, first = _where(contents), next(iter(contents.values()))
    shared = [c for c in columns if c.name != label and all(c.name in other.names for other in contents.values())]
    words = [column for column in shared if column.filled and column.can_be_text]
    long = [column.name for column in words if column.is_text]
    usual = [column.name for column in words if says_text(column.name)]
    pair = pair_of([c.name for c in words if c.is_text or c.name in usual or not c.is_label])
    if pair and not first.is_nameless and {*pair} & {*long, *usual}:
        return pair
    if len(long) == 1 and (not usual or long[0] in usual):
        return long
    if not long:
        _check_common(columns, contents)
        if len(usual) == 1 or len(columns) == len(words) == 1:
            return usual or [words[0].name]
    others = [c.name for c in sorted(words, key=lambda c: -c.distinct) if not says_label(c.name)]
    choices = [*dict.fromkeys([*usual, *long] or others)][:_MOST_CHOICES]
    if not choices:
        flag = flag or "--text, or the columns of a file without a header line with --columns"
        raise PotstillError(f"{where}: no column can be the text; {_there_are(first)}. Name it with {flag}.")
    answers = {name: [name] for name in choices} | {",".join(two): [*two] for two in combinations(choices, 2)}
    reason = "several columns may be the text" if long or usual else "no column reads like text"
    question = f"{where}: {reason}. Which is it (two are a pair)?"
    return answers[ask(Question(question, [*answers], flag or f"--text {quote(choices[0])}"))]


def _named_texts(named: Sequence[str], contents: dict[str, Content]) -> list[str]:
    """Return the columns that a user listed with commas; a name may have some itself."""
    spelled = {name.replace(" ", ""): name for content in contents.values() for name in content.names}
    whole = ",".join(named).replace(" ", "")
    if {*named} - {*spelled.values()} and whole in spelled:
        return [spelled[whole]]
    for name in named:
        _check_there(name, contents, "--text")
    if len(named) > 2:
        raise PotstillError(f"--text: {len(named)} columns. Name one for texts, or two for pairs.")
    return [*named]


def choose_label(
    columns: Sequence[Column],
    contents: dict[str, Content],
    texts: Sequence[str],
    named: str | None,
    needed: bool,
    ask: Ask,
) -> str | None:
    """Return the label column, or None if nothing is labelled.

    :param named: the column that the user named, or :data:`NONE`.
    :param needed: whether there must be one, because no teacher's answers are given.
    """
    if named == NONE:
        return None
    if named is not None:
        if not any(named in content.names for content in contents.values()):
            _check_there(named, contents, "--label")
        return named
    first, others = next(iter(contents.values())), [column for column in columns if column.name not in texts]
    candidates = [column.name for column in sorted(others, key=lambda c: c.distinct) if column.is_label]
    if not candidates and not needed:
        return None
    file, usual = _where(contents), [name for name in candidates if says_label(name)]
    usual = usual or [
        name for name in candidates if _LABEL_END.search(name) or any(name in c.class_names for c in contents.values())
    ]
    why = "".join(
        f" ({column.name}: {column.distinct:,} different value{'s'[: column.distinct != 1]} in {column.filled:,} rows)"
        for column in others
        if not usual and (says_label(column.name) or _LABEL_END.search(column.name))
    )
    remedy = (
        f"or if nothing is labelled, give a teacher's answers with --teacher FILE{{}}, or give these texts with "
        f"--unlabelled {quote(file)} besides labelled ones"
    )
    if not candidates:
        why += " (a text per line; a table needs the suffix .csv or .tsv)" if first.format == "lines" else ""
        raise PotstillError(
            f"{file}: no column can be the label; {_there_are(first)}{why}. Name it with --label; {remedy.format('')}."
        )
    if len(usual) == 1 or (len(candidates) == 1 and (first.is_nameless or counts_up(first.names))):
        return (usual or candidates)[0]
    names = usual or candidates
    which = "which column is the label?"
    if len(names) == 1:
        which = f"is column {names[0]!r}, whose name does not suggest it, the label?"
    flag = f"--label {quote(names[0])}; {remedy.format(' and --label none')}"
    answer = ask(Question(f"{file}: {which}{why} ({NONE}: nothing is labelled)", [*names, NONE], flag))
    return None if answer == NONE else answer


def choose_kind(name: str, values: Sequence[str], of_teacher: str | None, ask: Ask) -> str:
    """Return ``classification`` or ``regression``.

    :param values: the label column's values; :param of_teacher: what a finished teacher answers: numbers may be either.
    """
    filled = with_label(values)
    numbers = [number for number in map(finite_number, filled) if number is not None]
    if len(numbers) <= _NEARLY_ALL * max(len(filled), 1):
        if len({*filled}) > MAX_CLASSES:
            raise PotstillError(
                f"column {name!r}: {len({*filled}):,} different values are too many for classes. Name another with "
                "--label, merge them with --labels, or give --kind classification to keep them all."
            )
        return "classification"
    if of_teacher is not None:
        return of_teacher
    different = {*numbers}
    is_whole = all(number.is_integer() for number in different)
    if len(different) <= 2 or (is_whole and bare(name) in CLASSES and len(different) <= MAX_CLASSES):
        return "classification"
    if not is_whole and (bare(name) not in CLASSES or len(different) > _FEW):
        return "regression"
    question = (
        f"column {name!r}: {len(different)} different {'whole ' * is_whole}numbers, {min(different):g} to "
        f"{max(different):g}. Are they classes, or scores on a scale?"
    )
    flag = "--kind classification or --kind regression"
    return ask(Question(question, ["classification", "regression"], flag))


def check_notation(name: str, values: Sequence[str], contents: dict[str, Content]) -> None:
    """Refuse a label column of numbers with decimal commas or percent signs."""
    if is_misspelt([value for value in values if value]):
        path = next(content.paths[0] for content in contents.values() if name in content.names)
        raise PotstillError(
            f"{path}: column {name!r} has numbers with decimal commas or percent signs. Write 4.5 instead of 4,5, 1234 "
            "instead of 1,234, and 45 instead of 45%; or if they are classes, give --kind classification."
        )


def ends_as_label(name: str) -> bool:
    """Whether the end of a longer name is usual for a label."""
    return _LABEL_END.search(name) is not None


def pair_of(names: Sequence[str]) -> list[str] | None:
    """Return the first two columns whose names belong together: but for a number, or as premise and hypothesis."""
    for two in combinations(names, 2):
        first, second = (bare(name) for name in two)
        for pair in ((first, second), (second, first)):
            if pair in _PAIRS:
                return [*two] if pair == (first, second) else [two[1], two[0]]
        stem = SIDE.sub("", first)
        if stem.strip() and first != second and stem == SIDE.sub("", second):
            return [*two]
    return None


def _there_are(content: Content) -> str:
    others = f"; neither text nor numbers: {with_types(content.others)}" if content.others else ""
    return f"there are {', '.join(content.names)}{others}"


def _check_there(name: str, contents: dict[str, Content], flag: str) -> None:
    for content in contents.values():
        if name not in content.names:
            raise PotstillError(f"{content.paths[0]}: no column {name!r}; {_there_are(content)}. Correct {flag}.")


def _check_common(columns: Sequence[Column], contents: dict[str, Content]) -> None:
    """Check that no file lacks the first one's texts, as CoLA's test set does."""
    first, *others = contents.values()
    texts = [column.name for column in columns if column.is_text and column.name in first.names]
    for other in others:
        if texts and not {*texts} & {*other.names}:
            raise PotstillError(
                f"{other.paths[0]}: no column {texts[0]!r}, as in {first.paths[0]}; {_there_are(other)}. Give it the "
                "same columns, or leave it out by naming the other files: distill init TRAIN --dev DEV."
            )


def _where(contents: dict[str, Content]) -> str:
    return str(next(iter(contents.values())).paths[0])
