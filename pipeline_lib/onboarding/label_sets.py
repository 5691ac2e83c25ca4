"""Labels of which a row may have several: a column for each, or a column of lists."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.kind import MINUS_ONE, NO_VALUE
from pipeline_lib.base.kinds.label_lists import bracketed, separator_of, split_at
from pipeline_lib.base.kinds.label_sets import NO
from pipeline_lib.onboarding.columns import ends_as_label
from pipeline_lib.onboarding.labels import Labels, parse_labels
from pipeline_lib.onboarding.questions import Ask, Question
from pipeline_lib.tables.contents import Content
from pipeline_lib.tables.usual_names import says_label

YES = ("1", "1.0", "true", "yes")
"""What a column of a single label says where a row has it, in lower case."""
MOST = 200
"""More different entries of lists are no labels."""
_SEVERAL = "all of them, of which a row may have several"


@dataclass(frozen=True)
class LabelSet:
    """What says which labels a row has.

    :ivar columns: one for each label, or the one of lists; :ivar labels: as in params.yaml.
    :ivar empty: columns of labels that no row has, which are left out.
    """

    columns: str | list[str]
    labels: Labels
    empty: list[str]


def choose_label_set(
    contents: dict[str, Content],
    texts: Sequence[str],
    named: str | None,
    kind: str | None,
    spec: str | None,
    needed: bool,
    ask: Ask,
) -> LabelSet | None:
    """Return the labels of which a row may have several, or None if it has one at most.

    :param named: the columns that the user named, with commas, or None.
    :param kind: what the user said that labels are; :param spec: how the user described them.
    :param needed: whether there must be labels, because no teacher's answers are given.
    """
    if kind not in (None, "multilabel"):
        return None
    for content in contents.values():
        for name in [named] if named else filter(lambda name: says_label(name) or ends_as_label(name), content.names):
            check_named(content, name)
    names = [name.strip() for name in (named or "").split(",")]
    # Other splits than the first may be without labels.
    has = (content for content in contents.values() if {named, names[0]} & {*content.names})
    content = next(has, next(iter(contents.values())))
    if named is None:
        columns = _guessed(content, texts, kind, ask)
    elif named in content.names:
        columns = named if kind == "multilabel" or _holds_lists(content, named) else None
    else:
        columns = _checked(content, names) if len(names) > 1 else None
    if isinstance(columns, list):
        return _of_marks(content, columns, spec)
    if columns is not None:
        return LabelSet(columns, _of_lists(contents, columns, spec), [])
    if kind == "multilabel" and (needed or named is not None):
        raise PotstillError(
            f"{content.paths[0]}: no labels of which a row may have several: neither columns "
            "of 0 and 1, nor one of lists. Name them with --label a,b,c."
        )
    return None


def check_named(content: Content, column: str) -> None:
    """Check that a column's lists, if it holds some, say the names of labels: no vectors of marks, no objects."""
    cells = [cell for cell in content.values(column) if cell] if column in content.names else []
    if any(cell.startswith('{"') and '":' in cell for cell in cells):
        what = "JSON objects"
    else:
        lists = [bracketed(cell) or [] for cell in cells]
        lengths, entries = {*map(len, lists)}, {entry for row in lists for entry in row}
        if len(lengths) != 1 or max(lengths) < 2 or not entries <= {"0", "1", "0.0", "1.0"}:
            return
        what = f"lists of {max(lengths)} marks, 0 or 1"
    raise PotstillError(
        f"{content.paths[0]}: column {column!r} holds {what}, which do not say the names of labels. Write lists of "
        "names, or a column of 0 and 1 for each label."
    )


def _checked(content: Content, names: list[str]) -> list[str]:
    marks = marks_of(content, ())
    for name in names:
        if name not in content.names:
            raise PotstillError(
                f"{content.paths[0]}: no column {name!r}; there are {', '.join(content.names)}. Correct --label."
            )
        if name not in marks:
            raise PotstillError(
                f"{content.paths[0]}: column {name!r} holds other values than 0 and 1, or true and false, so it is no "
                "label of several. Remove it from --label."
            )
    return names


def marks_of(content: Content, texts: Sequence[str]) -> list[str]:
    """Return the columns that say yes or no, as 0 and 1, or true and false."""
    names = [name for name in content.names if name not in texts and name not in content.lists]
    values = {name: {value.casefold() for value in content.values(name)} - NO_VALUE - MINUS_ONE for name in names}
    return [name for name, each in values.items() if each and each <= {*YES, *NO}]


def _guessed(content: Content, texts: Sequence[str], kind: str | None, ask: Ask) -> str | list[str] | None:
    """Return the column of lists or the columns of marks; two, and such as may be classes, are asked about."""
    marks = marks_of(content, texts)
    others = [name for name in content.names if name not in (*texts, *marks)]
    lists = [name for name in others if _holds_lists(content, name)]
    usual = [name for name in others if says_label(name) or ends_as_label(name)]
    if lists and {*usual} <= {*lists}:
        question = f"{content.paths[0]}: several columns hold lists. Which has the labels?"
        names = usual or lists
        return names[0] if len(names) == 1 else ask(Question(question, names, f"--label {quote(names[0])}"))
    with_rows = [name for name in marks if _has_rows(content, name)]
    if len(with_rows) < 2 or (usual and kind is None):
        return None
    if kind == "multilabel" or (len(with_rows) > 2 and not _is_one_each(content, with_rows)):
        return marks
    if len(with_rows) == 2 and sum(map(says_label, with_rows)) == 1:
        return None
    question = f"{content.paths[0]}: {len(with_rows)} columns of 0 and 1, {', '.join(with_rows)}. Which are the labels?"
    flag = f"--kind multilabel for all of them, or --label {quote(with_rows[0])} for one"
    return marks if ask(Question(question, [_SEVERAL, "one of them"], flag)) == _SEVERAL else None


def _has_rows(content: Content, name: str) -> bool:
    return any(value.casefold() in YES for value in content.values(name))


def _is_one_each(content: Content, names: Sequence[str]) -> bool:
    """Whether every row has exactly one of the marks, so that they may be classes."""
    rows = zip(*(content.values(name) for name in names), strict=True)
    return all(sum(value.casefold() in YES for value in row) == 1 for row in rows)


def _holds_lists(content: Content, name: str) -> bool:
    """Whether a column's cells are lists of labels, some of them of several."""
    filled = [cell for cell in content.values(name) if cell]
    lists = [bracketed(cell) for cell in filled]
    if filled and None not in lists:
        entries = [entry for row in lists for entry in row]
        return 2 <= len({*entries}) <= min(MOST, len(entries) / 2) and all(len({*row}) == len(row) for row in lists)
    separator = separator_of(filled)
    if separator in (None, " "):
        return False
    # Names that only ever stand together are a single class.
    names = {name for cell in filled for name in split_at(separator, cell)}
    return len(names) < len({*filled})


def _of_marks(content: Content, columns: list[str], spec: str | None) -> LabelSet:
    if spec is not None:
        raise PotstillError(
            f"--labels {spec!r}: labels are named by their columns, {', '.join(columns)}. Leave it out."
        )
    with_rows = [name for name in columns if _has_rows(content, name)]
    if len(with_rows) < 2:
        raise PotstillError(
            f"{content.paths[0]}: of {', '.join(columns)}, only {', '.join(with_rows) or 'none'} has a "
            "row that says yes. Name other columns with --label."
        )
    labels = {name: sorted({value for value in content.values(name) if value.casefold() in YES}) for name in with_rows}
    return LabelSet(with_rows, labels, [name for name in columns if name not in with_rows])


def _of_lists(contents: dict[str, Content], column: str, spec: str | None) -> Labels:
    """Return the labels of a column of lists; spellings that differ only in case are one label."""
    holders = [content for content in contents.values() if column in content.names]
    cells = [cell for content in holders for cell in content.values(column)]
    separator = separator_of([cell for cell in cells if cell])
    counts: Counter[str] = Counter()
    for cell in cells:
        entries = bracketed(cell)
        if entries is None:
            entries = [cell] if separator is None else split_at(separator, cell)
        counts.update(entry for entry in entries if entry.casefold() not in NO_VALUE)
    if spec is not None:
        return parse_labels(spec, [*counts])
    if not 2 <= len(counts) <= MOST:
        raise PotstillError(
            f"column {column!r}: {len(counts):,} different entries of lists cannot be labels. Name "
            "another column with --label, or the labels with --labels 'joy;anger'."
        )
    for content in holders:
        if column in content.class_names:
            return {n: [str(i)] for i, n in enumerate(content.class_names[column]) if str(i) in counts}
    groups: dict[str, list[str]] = {}
    for entry in sorted(counts):
        groups.setdefault(entry.casefold(), []).append(entry)
    return {max(each, key=counts.__getitem__): each for each in groups.values()}
