"""What is odd about rows: empty texts, missing labels, classes of one row, repeats, leaks.

The rows are read and split as ``prepare`` does it, so that it finds no further faults later.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter, ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.kind import Meaning, finite_number
from pipeline_lib.base.kinds.scores import ScoreRange
from pipeline_lib.corpora.tasks.labelled import Example, Raw, missing_classes, numbers_of
from pipeline_lib.corpora.tasks.preparation import plain_labels, shared_rows, split_tables
from pipeline_lib.corpora.tasks.unlabelled import texts_of_no_split
from pipeline_lib.onboarding.understanding import TaskGuess
from pipeline_lib.params import UNLABELLED, Task
from pipeline_lib.tables.contents import Content

EMPTY = "with empty text"
MISSING = "without a label"
NO_NUMBER = "with a label that is not a number"
UNKNOWN = "with a label that belongs to no class"
LONELY = "alone in their class"
OUTSIDE = "outside the label ranges"
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

    :ivar texts: distinct texts, which join the transfer set. The others are left out: :ivar known:
        those among the splits' rows; :ivar repeated: repeated ones; :ivar empty: empty ones.
    """

    texts: int = 0
    known: int = 0
    repeated: int = 0
    empty: int = 0


@dataclass(frozen=True)
class Findings:
    """What was found in the rows.

    :ivar rows: rows of each split, once it is drawn; :ivar classes: these rows by class.
    :ivar repeated: rows that repeat a text of the same split; :ivar conflicts: those with another label.
    :ivar lengths: the words of each row's sentences, int64 (rows, 1 or 2).
    :ivar hidden: test splits without labels; :ivar lonely: classes of one row.
    :ivar further: unlabelled texts besides the splits.
    """

    rows: dict[str, int]
    classes: dict[str, dict[str, int]]
    odd: list[Odd]
    shared: list[Shared]
    repeated: int
    conflicts: int
    lengths: np.ndarray = field(compare=False)
    hidden: list[str] = field(default_factory=list)
    lonely: list[str] = field(default_factory=list)
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


def find(understood: TaskGuess, unlabelled: Content | None = None) -> Findings:
    """Examine all rows; those that the pipeline would leave out or refuse are not counted.

    :param unlabelled: texts besides the splits, under the task's column names.
    """
    task = _task(understood)
    meaning = KINDS[task.kind].meaning(task)
    examples: dict[str, list[Example]] = {}
    numbers: dict[str, list[int]] = {}
    odd: list[Odd] = []
    hidden: list[str] = []
    for split in understood.contents:
        rows = _Rows(understood, split, task, meaning)
        odd += rows.odd()
        hidden += [split] if rows.hidden else []
        examples[split], numbers[split] = rows.examples, rows.numbers
    lonely = _lonely(understood, task, examples, numbers)
    if unlabelled is not None:
        examples[UNLABELLED] = _texts(unlabelled, task)
    if task.learns_from_labels:
        _check_classes(understood, examples, meaning)
    tables = split_tables(examples, task)
    odd += lonely
    texts = tables.pop(UNLABELLED, None)
    return Findings(
        rows={name: table.num_rows for name, table in tables.items()},
        classes={name: _counts(table, task) for name, table in tables.items() if name not in hidden},
        odd=odd,
        shared=_shared(understood, tables, numbers),
        repeated=sum(_repeats(table)[0] for table in tables.values()),
        conflicts=sum(_repeats(table)[1] for table in tables.values()),
        lengths=_lengths(tables.values()),
        hidden=hidden,
        lonely=_names(lonely, understood, task),
        further=Further() if texts is None else _further(texts, tables, unlabelled),
    )


def without_lonely(understood: TaskGuess) -> TaskGuess:
    """Return it without the classes of one row; their rows then belong to no class."""
    task = _task(understood)
    if task.kind != "classification" or task.label_of(understood.examples) is None:
        return understood
    meaning = KINDS[task.kind].meaning(task)
    values = understood.contents[understood.examples].values(task.label_of(understood.examples))
    counts = Counter(meaning.classify(value) for value in values)
    names = [name for index, name in enumerate(task.label_names) if counts[index] == 1]
    return understood.without(names) if len(names) < len(task.label_names) - 1 else understood


_TASK: TypeAdapter[Task] = TypeAdapter(Task)


def _task(understood: TaskGuess) -> Task:
    """Return the task as it will be; the location of its files does not matter."""
    files = {split: f"{split}.parquet" for split in understood.contents}
    source = {"kind": "files", "files": files, "format": "parquet", "columns": None}
    try:
        return _TASK.validate_python(understood.task(source, n_iter=0))
    except ValidationError as error:
        faults = "; ".join(fault["msg"].removeprefix("Value error, ") for fault in error.errors())
        raise PotstillError(f"{faults}. Correct the flag that sets it.") from error


class _Rows:
    """The rows of one split: examples, and what is odd."""

    def __init__(self, understood: TaskGuess, split: str, task: Task, meaning: Meaning) -> None:
        self.split, self.content = split, understood.contents[split]
        self.meaning, columns = meaning, task.labels_of(split)
        self.is_test = split.startswith("test")
        self.given = bool(columns) and {*columns} <= {*self.content.names}
        texts = list(zip(*(self.content.values(name) for name in task.text), strict=True))
        raws: Sequence[Raw] = [""] * len(texts)
        if self.given:
            cells = [self.content.values(name) for name in columns]
            of_columns = isinstance(task.label_of(split), list)
            raws = list(zip(*cells, strict=True)) if of_columns else cells[0]
        # A test set is scored if all its labels are known, and not at all if none is.
        known = [raw != "" and meaning.classify(raw) is not None for raw in raws]
        self.hidden = self.is_test and bool(columns) and not any(known)
        self.found: dict[str, list[int]] = {}
        self.examples: list[Example] = []
        self.numbers: list[int] = []
        for row, (text, raw) in enumerate(zip(texts, raws, strict=True)):
            self._add(row, text, raw)

    def _add(self, row: int, texts: tuple[str, ...], raw: Raw) -> None:
        label = self.meaning.classify(raw) if self.given else None
        reason = EMPTY if not all(texts) else None
        if reason is None and label is None and self.given and not self.hidden:
            reason = self._reason(raw)
        if reason is not None:
            self.found.setdefault(reason, []).append(row)
            return
        self.examples.append(Example(texts, label))
        self.numbers.append(row)

    def _reason(self, raw: Raw) -> str:
        ranges = self.meaning.ranges
        if self.meaning.hides(raw):
            return MISSING
        if ranges and finite_number(raw) is not None:
            return OUTSIDE
        if not isinstance(self.meaning, ScoreRange):
            return UNKNOWN
        if finite_number(raw) is None:
            return NO_NUMBER
        low, high = self.meaning.low, self.meaning.high
        return f"with a score outside the range {low:g} to {high:g}"

    def odd(self) -> list[Odd]:
        """Return the odd rows by reason."""
        held_out = self.split.startswith(("dev", "test"))
        return [
            Odd(
                self.split,
                reason,
                rows,
                [self.content.place(row) for row in rows],
                stops=reason not in (EMPTY, OUTSIDE) or (reason == EMPTY and held_out),
            )
            for reason, rows in self.found.items()
        ]


def _check_classes(understood: TaskGuess, examples: dict[str, list[Example]], labels: Meaning) -> None:
    missing = missing_classes(examples[understood.examples], labels)
    if missing:
        path = understood.contents[understood.examples].paths[0]
        raise PotstillError(
            f"{path}: no row has the label {', '.join(missing)}, so it cannot be learned. Add rows "
            "of it, or name only the other classes with --labels."
        )


def _texts(unlabelled: Content, task: Task) -> list[Example]:
    texts = zip(*(unlabelled.values(name) for name in task.text), strict=True)
    examples = [Example(text, None) for text in texts if all(text)]
    if not examples:
        raise PotstillError(f"{unlabelled.paths[0]}: all texts are empty. Give other files.")
    return examples


def _further(texts: pa.Table, splits: dict[str, pa.Table], unlabelled: Content) -> Further:
    try:
        kept, left_out = texts_of_no_split(texts, splits.values(), UNLABELLED)
    except PotstillError as error:
        raise PotstillError(
            f"--unlabelled: all {texts.num_rows:,} texts are among the task's rows already. Give other files."
        ) from error
    empty = unlabelled.table.num_rows - texts.num_rows
    return Further(kept.num_rows, left_out["in_a_split"], left_out["repeated"], empty)


def _lonely(
    understood: TaskGuess, task: Task, examples: dict[str, list[Example]], numbers: dict[str, list[int]]
) -> list[Odd]:
    """Return the rows that are alone in their class: too few to learn it or to score it."""
    split = understood.examples
    if task.kind != "classification" or task.label_of(split) is None:
        return []
    counts = Counter(example.label for example in examples[split])
    rows = [row for example, row in zip(examples[split], numbers[split], strict=True) if counts[example.label] == 1]
    content = understood.contents[split]
    return [Odd(split, LONELY, rows, [content.place(r) for r in rows], False)] if rows else []


def _names(lonely: list[Odd], understood: TaskGuess, task: Task) -> list[str]:
    if not lonely:
        return []
    meaning, names = KINDS[task.kind].meaning(task), []
    for odd in lonely:
        values = understood.contents[odd.split].values(task.label_of(odd.split))
        names += [task.label_names[meaning.classify(values[row])] for row in odd.rows]
    return names


def _counts(table: pa.Table, task: Task) -> dict[str, int]:
    if task.score_range:
        return {}
    known = (label for label in plain_labels(table) if label is not None)
    counts = Counter(number for label in known for number in numbers_of(label))
    # Of several labels, it matters which ones no row has, if any has a label.
    every = task.kind == "multilabel" and bool(counts)
    names = enumerate(task.label_names)
    return {name: counts[index] for index, name in names if counts[index] or every}


def _shared(understood: TaskGuess, tables: dict[str, pa.Table], numbers: dict[str, list[int]]) -> list[Shared]:
    overlaps, order = [], [*tables]
    for index, split in enumerate(order):
        for earlier in order[:index]:
            counts = shared_rows(tables[split], tables[earlier])
            if not counts["rows"]:
                continue
            places: list[Place] = []
            # Rows of drawn splits have no place of their own, but these share no texts.
            if split in understood.contents and len(numbers[split]) == tables[split].num_rows:
                known = np.isin(tables[split]["key"].to_numpy(), tables[earlier]["key"].to_numpy())
                content = understood.contents[split]
                places = [content.place(numbers[split][row]) for row in np.flatnonzero(known)]
            overlaps.append(Shared(split, earlier, counts["rows"], counts["other_label"], places))
    return overlaps


def _repeats(table: pa.Table) -> tuple[int, int]:
    """Return how many rows repeat a text, and how many of these have another label."""
    first: dict[int, object] = {}
    repeated = conflicts = 0
    for key, label in zip(table["key"].to_pylist(), table["label"].to_pylist(), strict=True):
        if key in first:
            repeated += 1
            conflicts += first[key] != label
        first.setdefault(key, label)
    return repeated, conflicts


def _lengths(tables: Iterable[pa.Table]) -> np.ndarray:
    lengths = []
    for table in tables:
        sides = [name for name in table.column_names if name.startswith("words")]
        counted = [pc.list_value_length(table[side]).to_numpy() for side in sides]
        lengths.append(np.stack(counted, axis=1).astype(np.int64))
    return np.concatenate(lengths)


def kept_rows(understood: TaskGuess, findings: Findings | None) -> dict[str, Sequence[int]]:
    """Return the rows of each split to keep: all, or those that are not odd.

    :param findings: the odd rows to leave out, or None.
    """
    gone: dict[str, set[int]] = {}
    for odd in findings.odd if findings else ():
        gone.setdefault(odd.split, set()).update(odd.rows if odd.reason != OUTSIDE else ())
    return {
        split: [n for n in range(content.table.num_rows) if n not in gone.get(split, ())]
        for split, content in understood.contents.items()
    }
