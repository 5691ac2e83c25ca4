"""Decides which columns are texts, which is the label, and whether that is a class or a score."""

from collections.abc import Collection, Sequence
from itertools import combinations
from shlex import quote

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.kind import finite_number
from pipeline_lib.onboarding.columns import FEW, MAX_CLASSES, NEARLY_ALL, Column, notation
from pipeline_lib.onboarding.labels import with_label
from pipeline_lib.onboarding.names import (
    PAIRS,
    bare,
    ends_as_label,
    pair_of,
    says_classes,
    says_label,
    says_scores,
    says_text,
)
from pipeline_lib.onboarding.questions import Ask, Question
from pipeline_lib.tables.contents import Content, counts_up
from pipeline_lib.tables.nested import with_types

NONE = "none"
"""The answer if no column is the label."""
_REWRITE = {
    "decimal commas": "Write 4.5 instead of 4,5, and 1234 instead of 1,234",
    "percent signs": "Write 45 instead of 45%",
}
"""By notation, how numbers are to be written instead."""


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
        named = _whole_names(named, contents)
        for name in named:
            _check_there(name, contents, "--text")
        if len(named) > 2:
            raise PotstillError(f"--text: {len(named)} columns. Name one for texts, or two for pairs.")
        return [*named]
    parts = contents.values()
    columns = [column for column in columns if column.name != label]
    everywhere = [column for column in columns if all(column.name in part.names for part in parts)]
    candidates = [column.name for column in everywhere if column.is_text]
    if not candidates:
        _check_common(columns, contents)
        return _short_texts(everywhere, contents, ask, flag)
    second = [c.name for c in everywhere if c.is_text or not (c.numbers or c.is_label)]
    pair = pair_of(second, candidates)
    if pair:
        return pair
    reason = f"{_where(contents)}: several columns read like text."
    if not any(map(says_text, candidates)):
        # Short texts in a column with a text's name, beside longer ones: either may be meant.
        candidates += [name for name in second if says_text(name)]
        reason = f"{_where(contents)}: several columns may be the text."
    return candidates if len(candidates) == 1 else _asked_texts(candidates, reason, ask, flag)


def _whole_names(parts: Sequence[str], contents: dict[str, Content]) -> list[str]:
    """Return the columns that a user listed with commas; a name may have some itself."""
    names = {name for content in contents.values() for name in content.names}
    spelled = {name.replace(" ", ""): name for name in names}
    whole = ",".join(parts).replace(" ", "")
    return [spelled[whole]] if {*parts} - names and whole in spelled else [*parts]


def _short_texts(columns: Sequence[Column], contents: dict[str, Content], ask: Ask, flag: str | None) -> list[str]:
    """Return the text columns if none reads like text, since intents and queries are short.

    Then their names decide, or the user does.
    """
    words = [column for column in columns if column.filled and not column.numbers]
    named = [column.name for column in words if says_text(column.name)]
    different = [c.name for c in words if c.name in named or not c.is_label]
    pair = pair_of(different, named) or pair_of(different, different)
    known = pair is not None and ({*pair} & {*named} or tuple(map(bare, pair)) in PAIRS)
    if known:
        return pair
    unclear = [column for column in words if not says_label(column.name)]
    if len(named) == 1 or len(columns) == len(unclear) == 1:
        return named or [unclear[0].name]
    candidates = named or [c.name for c in sorted(unclear, key=lambda c: -c.distinct)]
    if not candidates:
        first, *_ = contents.values()
        raise PotstillError(
            f"{_where(contents)}: no column can be the text; {_there_are(first)}. Name it with "
            + (flag or "--text, or the columns of a file without a header line with --columns")
            + "."
        )
    reason = "several columns may be the text" if named else "no column reads like text"
    return _asked_texts(candidates, f"{_where(contents)}: {reason}.", ask, flag)


def _asked_texts(names: Sequence[str], reason: str, ask: Ask, flag: str | None) -> list[str]:
    usual = [name for name in names if says_text(name)]
    ordered = [*usual, *(name for name in names if name not in usual)]
    choices = {name: [name] for name in ordered}
    choices |= {",".join(two): [*two] for two in combinations(ordered, 2)}
    question = f"{reason} Which is it (two are a pair)?"
    return choices[ask(Question(question, [*choices], flag or f"--text {quote(ordered[0])}"))]


def choose_label(
    columns: Sequence[Column],
    contents: dict[str, Content],
    texts: Sequence[str],
    named: str | None,
    needed: bool,
    ask: Ask,
) -> str | None:
    """Return the label column, or None if nothing is labelled.

    If the only candidate has a name that does not suggest a label, the user is asked; without a
    header line, names say nothing.

    :param named: the column that the user named, or :data:`NONE`.
    :param needed: whether there must be one, because no teacher's answers are given.
    """
    if named == NONE:
        return None
    if named is not None:
        if not any(named in content.names for content in contents.values()):
            _check_there(named, contents, "--label")
        return named
    # Only dev and test may be labelled.
    seen = {column.name: column for column in columns}
    for content in contents.values():
        for name in content.names:
            if name not in content.lists:
                seen.setdefault(name, Column.of(name, content.table[name]))
    others = [column for column in seen.values() if column.name not in texts]
    first = next(iter(contents.values()))
    candidates = [column.name for column in others if column.is_label]
    if not candidates and not needed:
        return None
    if not candidates:
        raise PotstillError(
            f"{_where(contents)}: no column can be the label; {_there_are(first)}{_why_not(others)}. Name it with "
            "--label; or if nothing is labelled, give a teacher's answers with --teacher FILE, or give these texts "
            "with --unlabelled besides labelled ones."
        )
    usual = [name for name in candidates if says_label(name)] or [
        name for name in candidates if ends_as_label(name) or _has_class_names(name, contents)
    ]
    nameless = first.is_nameless or counts_up(first.names)
    if len(usual) == 1 or (len(candidates) == 1 and nameless):
        return (usual or candidates)[0]
    which = "which column is the label?"
    if len(candidates) == 1:
        which = f"is column {candidates[0]!r}, whose name does not suggest it, the label?"
    why = "" if usual else _why_not(others)
    return _asked_label(usual or candidates, f"{_where(contents)}: {which}{why}", contents, ask)


def _asked_label(names: Sequence[str], reason: str, contents: dict[str, Content], ask: Ask) -> str | None:
    file = quote(_where(contents))
    flag = (
        f"--label {quote(names[0])}; or if nothing is labelled, with --label none and a file of "
        f"answers, --teacher FILE, or with --unlabelled {file} besides labelled ones"
    )
    answer = ask(Question(f"{reason} ({NONE}: nothing is labelled)", [*names, NONE], flag))
    return None if answer == NONE else answer


def _has_class_names(name: str, contents: dict[str, Content]) -> bool:
    return any(name in content.class_names for content in contents.values())


def _why_not(columns: Sequence[Column]) -> str:
    """Say why columns that have a label's name are not labels."""
    return "".join(
        f" ({column.name}: {column.distinct:,} different value{'s'[: column.distinct != 1]} in {column.filled:,} rows)"
        for column in columns
        if says_label(column.name) or ends_as_label(column.name)
    )


def choose_kind(name: str, values: Sequence[str], named: str | None, of_teacher: str | None, ask: Ask) -> str:
    """Return ``classification`` or ``regression``.

    :param values: the label column's values; :param named: what the user said.
    :param of_teacher: what a finished teacher answers: numbers may be either.
    """
    if named is not None:
        return named
    filled = with_label(values)
    numbers = [value for value in filled if finite_number(value) is not None]
    if len(numbers) <= NEARLY_ALL * max(len(filled), 1):
        classes = len(set(filled))
        if classes > MAX_CLASSES:
            raise PotstillError(
                f"column {name!r}: {classes:,} different values are too many for classes. Name another with --label, "
                "merge them with --labels, or give --kind classification to keep them all."
            )
        return "classification"
    if of_teacher is not None:
        return of_teacher
    distinct = {*map(float, numbers)}
    whole = all(number.is_integer() for number in distinct)
    if whole and says_classes(name) and len(distinct) <= MAX_CLASSES:
        return "classification"
    if whole and len(distinct) > FEW and not says_scores(name):
        return ask(_classes_or_scores(f"column {name!r}", distinct))
    return kind_of_numbers(f"column {name!r}", [*distinct], ask)


def kind_of_numbers(where: str, numbers: Sequence[float], ask: Ask) -> str:
    """Return ``classification`` or ``regression`` for labels that are numbers.

    :param where: whose labels they are, for the question.
    """
    different = {*numbers}
    if len(different) <= 2:
        return "classification"
    if len(different) > FEW or not all(number.is_integer() for number in different):
        return "regression"
    return ask(_classes_or_scores(where, different))


def _classes_or_scores(where: str, different: Collection[float]) -> Question:
    return Question(
        f"{where}: {len(different)} different whole numbers, {min(different):g} to "
        f"{max(different):g}. Are they classes, or scores on a scale?",
        ["classification", "regression"],
        "--kind classification or --kind regression",
    )


def check_notation(name: str, values: Sequence[str], contents: dict[str, Content]) -> None:
    """Refuse a label column of numbers with decimal commas or percent signs."""
    style = notation([value for value in values if value])
    if style is not None:
        path = next(content.paths[0] for content in contents.values() if name in content.names)
        raise PotstillError(
            f"{path}: column {name!r} has numbers with {style}. {_REWRITE[style]}; or if they are "
            "classes, give --kind classification."
        )


def _there_are(content: Content) -> str:
    """Say which columns a file has, and which do not contain plain values."""
    others = with_types(content.others)
    others = f"; neither text nor numbers: {others}" if others else ""
    return f"there are {', '.join(content.names)}{others}"


def _check_there(name: str, contents: dict[str, Content], flag: str) -> None:
    for content in contents.values():
        if name not in content.names:
            raise PotstillError(f"{content.paths[0]}: no column {name!r}; {_there_are(content)}. Correct {flag}.")


def _check_common(columns: Sequence[Column], contents: dict[str, Content]) -> None:
    """Check that no file lacks the first one's texts, as CoLA's test set does.

    That has a header line and other columns than its training set.
    """
    first, *others = contents.values()
    texts = [column.name for column in columns if column.is_text]
    for other in others:
        if texts and not {*texts} & {*other.names}:
            raise PotstillError(
                f"{other.paths[0]}: no column {texts[0]!r}, as in {first.paths[0]}; {_there_are(other)}. Give it the "
                "same columns, or leave it out by naming the other files: distill init TRAIN --dev DEV."
            )


def _where(contents: dict[str, Content]) -> str:
    return str(next(iter(contents.values())).paths[0])
