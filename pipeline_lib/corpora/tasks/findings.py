"""What is odd about rows: empty texts, missing labels, classes of one row, repeats, leaks.

The rows are read and split as ``prepare`` does it, so that it finds no further faults later.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.classes import LabelMap
from pipeline_lib.base.kinds.kind import Meaning, finite_number
from pipeline_lib.base.kinds.scores import ScoreRange
from pipeline_lib.corpora.tasks.labelled import Example, Raw, missing_classes, numbers_of
from pipeline_lib.corpora.tasks.preparation import plain_labels, shared_rows, split_tables
from pipeline_lib.corpora.tasks.splits import texts_of_no_split
from pipeline_lib.params import UNLABELLED, Task
from pipeline_lib.tables.contents import Content

EMPTY = "with empty text"
MISSING = "without a label"
LONELY = "alone in their class"
OUTSIDE = "outside the label ranges"
TRIED_ROWS = 200
Place = tuple[Path, int]
"""A file, and a row number in it as an editor shows it."""


@dataclass(frozen=True)
class Odd:
    """Rows of one split that are odd in the same way.

    :ivar rows: row numbers in the split's table; :ivar stops: whether the pipeline would refuse
        them; it leaves out and counts the others, or keeps them.
    """

    split: str
    reason: str
    rows: list[int]
    places: list[Place]
    stops: bool


@dataclass(frozen=True)
class Shared:
    """Texts of a split that are in an earlier one too: what is scored was trained on."""

    split: str
    earlier: str
    rows: int
    other_label: int
    places: list[Place]


@dataclass(frozen=True)
class Further:
    """Counts of unlabelled texts, as ``prepare`` uses them.

    :ivar texts: distinct texts, which join the transfer set. The others are left out: :ivar among_rows:
        those among the splits' rows; :ivar repeated: repeated ones; :ivar empty: empty ones.
    """

    texts: int = 0
    among_rows: int = 0
    repeated: int = 0
    empty: int = 0


@dataclass(frozen=True)
class Findings:
    """What was found in the rows.

    :ivar rows: rows of each split, once it is drawn; :ivar classes: these rows by class.
    :ivar repeated: rows that repeat a text of the same split; :ivar conflicts: those with another label.
    :ivar lengths: the words of each row's sentences, int64 (rows, 1 or 2).
    :ivar hidden: test splits without labels; :ivar further: unlabelled texts besides the splits.
    :ivar labelled: some rows of train, prepared, by which a teacher is tried.
    """

    rows: dict[str, int]
    classes: dict[str, dict[str, int]]
    odd: list[Odd]
    shared: list[Shared]
    repeated: int
    conflicts: int
    lengths: np.ndarray = field(compare=False)
    labelled: pa.Table = field(compare=False)
    hidden: list[str] = field(default_factory=list)
    further: Further = field(default_factory=Further)

    @property
    def words(self) -> tuple[int, int, int]:
        """Words per sentence: quantiles 0.5, 0.95 and 1."""
        quantiles = np.quantile(self.lengths, (0.5, 0.95, 1.0))
        return tuple(int(value) for value in quantiles)

    @property
    def stopping(self) -> list[Odd]:
        """The rows that the pipeline would refuse."""
        return [odd for odd in self.odd if odd.stops]


def find(task: Task, contents: Mapping[str, Content], labelled: str, unlabelled: Content | None = None) -> Findings:
    """Examine all rows; those that the pipeline would leave out or refuse are not counted.

    :param contents: by split; :param labelled: the split that students are trained on, or that splits are drawn from.
    :param unlabelled: texts besides the splits, under the task's column names.
    """
    splits = {split: _Rows(content, split, task) for split, content in contents.items()}
    examples = {split: rows.examples for split, rows in splits.items()}
    splits[labelled].check_classes()
    if unlabelled is not None:
        texts = zip(*(unlabelled.values(name) for name in task.text), strict=True)
        examples[UNLABELLED] = [Example(text, None) for text in texts if all(text)]
        if not examples[UNLABELLED]:
            raise PotstillError(f"{unlabelled.paths[0]}: all texts are empty. Give other files.")
    tables = split_tables(examples, task)
    further = tables.pop(UNLABELLED, None)
    repeats = [_repeats(table) for table in tables.values()]
    hidden = [split for split, rows in splits.items() if rows.is_hidden]
    return Findings(
        rows={name: table.num_rows for name, table in tables.items()},
        classes={name: _counts(table, task) for name, table in tables.items() if name not in hidden},
        odd=[odd for rows in splits.values() for odd in rows.odd()] + splits[labelled].lonely(),
        shared=_shared(splits, tables),
        repeated=sum(repeated for repeated, _ in repeats),
        conflicts=sum(conflicts for _, conflicts in repeats),
        lengths=np.concatenate([_lengths(table) for table in tables.values()]),
        labelled=_some(tables["train"].filter(pc.field("label").is_valid())),
        hidden=hidden,
        further=Further() if further is None else _further(further, tables, unlabelled),
    )


def _some(rows: pa.Table) -> pa.Table:
    return rows.take(np.arange(0, len(rows), len(rows) // TRIED_ROWS + 1))


class _Rows:
    """The rows of one split: examples, their numbers in the table, and what is odd."""

    def __init__(self, content: Content, split: str, task: Task) -> None:
        self.split, self.content, self.task = split, content, task
        self.meaning: Meaning = KINDS[task.kind].meaning(task)
        columns = task.labels_of(split)
        self.has_labels = bool(columns) and {*columns} <= {*content.names}
        texts = list(zip(*(content.values(name) for name in task.text), strict=True))
        raws: Sequence[Raw] = [""] * len(texts)
        if self.has_labels:
            cells = [content.values(name) for name in columns]
            raws = list(zip(*cells, strict=True)) if isinstance(task.label_of(split), list) else cells[0]
        labels = [self.meaning.classify(raw) if self.has_labels else None for raw in raws]
        # A test set is scored if all its labels are known, and not at all if none is.
        any_label = any(raw != "" and label is not None for raw, label in zip(raws, labels, strict=True))
        self.is_hidden = split.startswith("test") and bool(columns) and not any_label
        self.reasons: dict[str, list[int]] = {}
        self.examples: list[Example] = []
        self.numbers: list[int] = []
        for row, (text, raw, label) in enumerate(zip(texts, raws, labels, strict=True)):
            is_odd = label is None and self.has_labels and not self.is_hidden
            reason = EMPTY if not all(text) else self._reason(raw) if is_odd else None
            if reason is not None:
                self.reasons.setdefault(reason, []).append(row)
            else:
                self.examples.append(Example(text, label))
                self.numbers.append(row)

    def _reason(self, raw: Raw) -> str:
        if self.meaning.hides(raw):
            return f"{MISSING} ({raw})" if raw and isinstance(raw, str) else MISSING
        if not isinstance(self.meaning, ScoreRange):
            ranges = self.meaning.ranges if isinstance(self.meaning, LabelMap) else []
            outside = ranges and finite_number(raw) is not None
            return OUTSIDE if outside else "with a label that belongs to no class"
        if finite_number(raw) is None:
            return "with a label that is not a number"
        return f"with a score outside the range {self.meaning.low:g} to {self.meaning.high:g}"

    def odd(self) -> list[Odd]:
        """Return the odd rows by reason."""
        held_out = self.split.startswith(("dev", "test"))
        return [
            self._odd(reason, rows, stops=reason != OUTSIDE and (reason != EMPTY or held_out))
            for reason, rows in self.reasons.items()
        ]

    def _odd(self, reason: str, rows: list[int], stops: bool) -> Odd:
        return Odd(self.split, reason, rows, [self.content.place(row) for row in rows], stops)

    def lonely(self) -> list[Odd]:
        """Return the rows that are alone in their class: too few to learn it or to score it."""
        if not KINDS[self.task.kind].one_of or self.task.label_of(self.split) is None:
            return []
        counts = Counter(example.label for example in self.examples)
        rows = [row for e, row in zip(self.examples, self.numbers, strict=True) if counts[e.label] == 1]
        return [self._odd(LONELY, rows, stops=False)] if rows else []

    def check_classes(self) -> None:
        """Check that every class has a row to learn it from."""
        if not self.task.learns_from_labels:
            return
        if missing := missing_classes(self.examples, self.meaning):
            raise PotstillError(
                f"{self.content.paths[0]}: no row has the label {', '.join(missing)}, so it cannot be learned. Add "
                "rows of it, or name only the other classes with --labels."
            )


def _further(texts: pa.Table, splits: dict[str, pa.Table], unlabelled: Content) -> Further:
    try:
        texts_left, left_out = texts_of_no_split(texts, splits.values(), UNLABELLED)
    except PotstillError as error:
        raise PotstillError(
            f"--unlabelled: all {texts.num_rows:,} texts are among the task's rows already. Give other files."
        ) from error
    empty = unlabelled.table.num_rows - texts.num_rows
    return Further(texts_left.num_rows, left_out["in_a_split"], left_out["repeated"], empty)


def _counts(table: pa.Table, task: Task) -> dict[str, int]:
    if task.score_range:
        return {}
    labels = (label for label in plain_labels(table) if label is not None)
    counts = Counter(number for label in labels for number in numbers_of(label))
    # It matters which ones no row has, if any has a label.
    return {name: counts[index] for index, name in enumerate(task.label_names)} if counts else {}


def _shared(splits: dict[str, _Rows], tables: dict[str, pa.Table]) -> list[Shared]:
    overlaps, order = [], [*tables]
    for index, split in enumerate(order):
        for earlier in order[:index]:
            counts = shared_rows(tables[split], tables[earlier])
            if not counts["rows"]:
                continue
            numbered: list[Place] = []
            # Rows of drawn splits have no place of their own, but these share no texts.
            if split in splits and len(splits[split].numbers) == tables[split].num_rows:
                is_shared = np.isin(tables[split]["key"].to_numpy(), tables[earlier]["key"].to_numpy())
                numbered = [
                    splits[split].content.place(splits[split].numbers[row]) for row in np.flatnonzero(is_shared)
                ]
            overlaps.append(Shared(split, earlier, counts["rows"], counts["other_label"], numbered))
    return overlaps


def _repeats(table: pa.Table) -> tuple[int, int]:
    """Return how many rows repeat a text, and how many of these have another label."""
    first: dict[int, object] = {}
    repeated = conflicts = 0
    for key, label in zip(table["key"].to_pylist(), table["label"].to_pylist(), strict=True):
        repeated += key in first
        conflicts += first.setdefault(key, label) != label
    return repeated, conflicts


def _lengths(table: pa.Table) -> np.ndarray:
    """Return the words of each row's sentences, int64 (rows, 1 or 2)."""
    sides = [table[name] for name in table.column_names if name.startswith("words")]
    return np.stack([pc.list_value_length(side).to_numpy() for side in sides], axis=1).astype(np.int64)


def rows_to_keep(contents: Mapping[str, Content], odd: Sequence[Odd]) -> dict[str, Sequence[int]]:
    """Return the rows of each split that stay if odd ones are left out."""
    gone: dict[str, set[int]] = {}
    for rows in odd:
        gone.setdefault(rows.split, set()).update(rows.rows if rows.reason not in (OUTSIDE, LONELY) else ())
    return {
        split: [n for n in range(content.table.num_rows) if n not in gone.get(split, ())]
        for split, content in contents.items()
    }
