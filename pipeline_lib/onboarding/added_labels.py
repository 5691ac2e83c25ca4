"""Rows that a user labelled after the splits were drawn: what they add to a task's training set."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.classes import LabelMap
from pipeline_lib.base.kinds.kind import finite_number
from pipeline_lib.base.kinds.scores import ScoreRange
from pipeline_lib.corpora.tasks.added import with_added
from pipeline_lib.corpora.tasks.fetching import fetch_data
from pipeline_lib.corpora.tasks.labelled import Example, added_meaning, read_examples
from pipeline_lib.corpora.tasks.preparation import example_table, split_tables
from pipeline_lib.onboarding.columns import choose_label, choose_texts, look_at
from pipeline_lib.onboarding.labels import known_spelling
from pipeline_lib.onboarding.questions import Ask
from pipeline_lib.params import ADDED, UNLABELLED, Params, Task
from pipeline_lib.tables.contents import Content, read_content
from pipeline_lib.tables.reader import ReadOptions, read_batches
from pipeline_lib.tables.writer import unmarked

Texts = tuple[str, ...]
_SHOWN = 8
"""How many faulty rows a message lists."""
NO_LABEL, EMPTY, OUTSIDE = "without a label", "with empty text", "outside the label ranges"
SCORED, KNOWN = "whose text is in dev or test", "labelled so already"


@dataclass(frozen=True)
class PresentRows:
    """A task's rows as they are now.

    :ivar texts: the content keys of all its texts, uint64; :ivar scored: of those in dev and test.
    :ivar labels: those that a text has in the training set, by its key.
    :ivar added: the texts and raw labels of the rows that were labelled later, by their keys.
    :ivar unlabelled: the keys of the unlabelled texts, uint64.
    """

    texts: np.ndarray
    scored: np.ndarray
    labels: dict[int, set[float]]
    added: dict[int, tuple[Texts, str]]
    unlabelled: np.ndarray

    @classmethod
    def read(cls, params: Params, name: str) -> "PresentRows":
        """Read a task's source, and draw its splits, as the pipeline will."""
        task, inputs = params.task(name), Path(params.inputs)
        path = None if task.added_labels is None else inputs / task.added_labels
        with tempfile.TemporaryDirectory() as folder:
            raw = Path(folder) / name
            fetch_data(name, task.source, inputs, raw, added=path)
            examples, _ = read_examples(raw, task)
        tables = split_tables(examples, task)
        texts = np.concatenate([keys_of(table) for table in tables.values()])
        train, unlabelled = tables.pop("train"), tables.pop(UNLABELLED, None)
        added = tables.pop(ADDED, None)
        scored = [keys_of(table) for table in tables.values()]
        if added is not None:
            train, _ = with_added(train, added, tables.values())
        labels: dict[int, set[float]] = {}
        for key, label in zip(keys_of(train).tolist(), train["label"].to_pylist(), strict=True):
            labels.setdefault(key, set()).add(label)
        return cls(
            texts,
            np.concatenate(scored),
            labels,
            {} if path is None else dict(_stored(path, task)),
            np.empty(0, np.uint64) if unlabelled is None else keys_of(unlabelled),
        )

    @property
    def left(self) -> int:
        """The number of unlabelled texts that have no label yet."""
        return len({*self.unlabelled.tolist()} - self.labels.keys() - {*self.scored.tolist()})


@dataclass(frozen=True)
class AddedLabels:
    """What a file of labels adds to a task.

    :ivar rows: the rows of the task's file of such labels, those of before included.
    :ivar new: how many rows are new; :ivar replaced: how many of them replace another label.
    :ivar skipped: how many rows of the file add nothing, by reason.
    :ivar train: the number of texts in the training set; :ivar unlabelled: of those left without a label.
    """

    rows: pa.Table
    new: int
    replaced: int
    skipped: dict[str, int]
    train: int
    unlabelled: int


def read_labels(
    paths: Sequence[Path], task: Task, options: ReadOptions, text: Sequence[str], label: str | None, ask: Ask
) -> Content:
    """Read files of labelled rows, under the names of the task's columns.

    :param text: the text columns that the user named, if any; :param label: the label column.
    """
    content, column = read_content(paths, options), task.label_of("train")
    parts = {"all": content}
    columns = look_at(parts)
    if not text and {*task.text} <= {*content.names}:
        text = task.text
    texts = choose_texts(columns, parts, text, label, ask)
    if label is None and column in content.names:
        label = column
    label = choose_label(columns, parts, texts, label, True, ask)
    names = ", ".join(task.text)
    if len(texts) != len(task.text):
        raise PotstillError(
            f"{paths[0]}: {len(texts)} text columns ({', '.join(texts)}), but the task reads "
            f"{len(task.text)}. Give them the task's names: {names}."
        )
    if label not in content.names:
        raise PotstillError(f"{paths[0]}: no column of labels. Name it with --label.")
    table = content.table.select([*texts, label]).rename_columns([*task.text, column])
    return Content(content.paths, table, content.numbers, content.files, None)


def added_labels(content: Content, task: Task, present: PresentRows, replace: bool) -> AddedLabels:
    """Return what a file of labels adds to a task's training set.

    :param content: the file, under the names of the task's columns.
    :param replace: whether its labels replace others that its texts have.
    """
    rows = _Rows(content, task, present)
    column = task.label_of("train")
    if not rows.labelled:
        raise PotstillError(f"{content.paths[0]}: no row has a label in column {column!r}.")
    rows.refuse(replace)
    kept = present.added | {key: (rows.texts[n], rows.raws[n]) for key, n in rows.new.items()}
    table = {name: [t[side] for t, _ in kept.values()] for side, name in enumerate(task.text)}
    table[column] = [raw for _, raw in kept.values()]
    texts = {*present.labels} | {*rows.new}
    return AddedLabels(
        pa.table({name: pa.array(values, pa.string()) for name, values in table.items()}),
        len(rows.new),
        len(rows.other),
        rows.skipped,
        len(texts),
        present.left - len({*rows.new} & {*present.unlabelled.tolist()} - {*present.labels}),
    )


class _Rows:
    """The rows of a file of labels, sorted by what becomes of them.

    :ivar labelled: how many have a label; :ivar new: by content key, the numbers of those that add something.
    :ivar unknown: those with a label that is none; :ivar other: with another label than their text
        has; :ivar twice: with another label than an earlier row of the same text.
    """

    def __init__(self, content: Content, task: Task, present: PresentRows) -> None:
        self.content, self.meaning = content, added_meaning(task)
        self.column = task.label_of("train")
        every = [*zip(*(content.values(name) for name in task.text), strict=True)]
        self.raws = [known_spelling(raw, self.meaning) for raw in content.values(self.column)]
        self.skipped: dict[str, int] = {}
        self.new: dict[int, int] = {}
        self.unknown: list[int] = []
        self.other: list[int] = []
        self.twice: list[int] = []
        rows = [row for row, text in enumerate(every) if self._has_both(row, text)]
        self.labelled = len(rows) + len(self.unknown)
        self.texts, keys = _matched([every[row] for row in rows], task, present.texts)
        self.texts = dict(zip(rows, self.texts, strict=True))
        scored = np.isin(keys, present.scored)
        for row, key, is_scored in zip(rows, keys.tolist(), scored.tolist(), strict=True):
            if is_scored:
                self._skip(SCORED)
            else:
                self._add(row, key, present)

    def _has_both(self, row: int, text: Texts) -> bool:
        raw = self.raws[row]
        ranges = self.meaning.ranges if isinstance(self.meaning, LabelMap) else ()
        if self.meaning.classify(raw) is None:
            if self.meaning.hides(raw):
                self._skip(NO_LABEL)
            elif ranges and finite_number(raw) is not None:
                self._skip(OUTSIDE)
            else:
                self.unknown.append(row)
            return False
        if not all(text):
            self._skip(EMPTY)
        return all(text)

    def _add(self, row: int, key: int, present: PresentRows) -> None:
        label = self._label(row)
        if key in self.new and self._label(self.new[key]) != label:
            self.twice.append(row)
        elif key in self.new or label in present.labels.get(key, ()):
            self._skip(KNOWN)
        else:
            self.new[key] = row
            if key in present.labels:
                self.other.append(row)

    def _label(self, row: int) -> float:
        """Return a row's class, or its score as prepared rows hold it."""
        label = self.meaning.classify(self.raws[row])
        return label if isinstance(self.meaning, LabelMap) else float(np.float32(label))

    def _skip(self, reason: str) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def refuse(self, replace: bool) -> None:
        """Refuse rows that cannot be used."""
        faults = []
        if self.unknown:
            faults.append(
                f"{self._named(self.unknown)}: not a label of the task, whose labels are "
                f"{_spelled(self.meaning)}. Correct them, or leave them empty."
            )
        if self.twice:
            faults.append(
                f"{self._named(self.twice)}: an earlier row has this text under another label. Keep one of the two."
            )
        if self.other and not replace:
            faults.append(
                f"{self._named(self.other)}: the text has another label in the training set. "
                "Correct them, leave them empty, or give --replace, so that these labels count."
            )
        if faults:
            raise PotstillError("\n".join(faults))

    def _named(self, rows: list[int]) -> str:
        """List the first rows by file, number and label, and count the rest."""
        labels = self.content.values(self.column)
        places = [(*self.content.place(row), labels[row]) for row in rows[:_SHOWN]]
        shown = [f"{path} row {number} ({raw!r:.40})" for path, number, raw in places]
        more = f" and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
        return ", ".join(shown) + more


def keys_of(table: pa.Table) -> np.ndarray:
    """Return the rows' content keys, uint64 (rows,)."""
    return table["key"].to_numpy()


def _stored(path: Path, task: Task) -> Iterator[tuple[int, tuple[Texts, str]]]:
    """Yield the key, the texts and the raw label of each row of a task's file of added labels."""
    for batch in read_batches(path, [*task.text, task.label_of("train")]):
        rows = [*zip(*(map(str.strip, batch.texts(name)) for name in task.text), strict=True)]
        raws = batch.texts(task.label_of("train"))
        kept = [(text, raw.strip()) for text, raw in zip(rows, raws, strict=True) if all(text)]
        yield from zip(_keys([text for text, _ in kept], task), kept, strict=True)


def _keys(texts: Sequence[Texts], task: Task) -> list[int]:
    table = example_table([Example(text, None) for text in texts], task) if texts else None
    return [] if table is None else keys_of(table).tolist()


def _matched(texts: Sequence[Texts], task: Task, known: np.ndarray) -> tuple[list[Texts], np.ndarray]:
    """Return texts and their content keys, uint64 (texts,).

    A text that the task has without an apostrophe at its start loses it: the CSV of a work list
    puts one before what a spreadsheet would compute.
    """
    keys = np.array(_keys(texts, task), np.uint64)
    bare = [tuple(map(unmarked, text)) for text in texts]
    marked = [row for row, text in enumerate(bare) if text != texts[row] and all(text)]
    matched, every = [*texts], {*known.tolist()} if marked else set()
    for row, key in zip(marked, _keys([bare[row] for row in marked], task), strict=True):
        if key in every and int(keys[row]) not in every:
            matched[row], keys[row] = bare[row], key
    return matched, keys


def _spelled(meaning: LabelMap | ScoreRange) -> str:
    if isinstance(meaning, ScoreRange) or meaning.ranges:
        return str(meaning)
    return ", ".join(dict.fromkeys(map(repr, chain(meaning.names, meaning.values))))
