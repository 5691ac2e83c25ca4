"""A teacher's answers in files, as logits in the order of the task's classes, or as scores.

The logits are the logarithms of the probabilities (Ba and Caruana 2014, section 2.2), minus their
mean over classes, to which the softmax is invariant (the centred log-ratio, Aitchison 1982).  Of
several labels, each has a probability of its own, and its logit is log(p / (1 - p)).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.label_lists import entries_of
from pipeline_lib.base.kinds.probabilities import logit, softmax
from pipeline_lib.outputs.files.answer_rows import Numbers, read_answers
from pipeline_lib.outputs.files.gathering import frequent
from pipeline_lib.outputs.files.keyed_table import KeyedTable
from pipeline_lib.outputs.files.teacher_files import Described, Given, GivenRows, parts_of
from pipeline_lib.params import AnswerFiles, Task

NAMED = 10
"""Classes that a message names."""
SMOOTHING = 0.1
"""The share of a bare label that is spread over all classes (Szegedy et al. 2016, section 7)."""
FLOOR = 1e-4
"""The smallest probability of a class: one of 0 would have an infinite logit."""
EXCESS = 0.01
"""By how much a sum of probabilities may exceed 1: they are written with few digits."""


class Answers:
    """A task's answers in files, and how they are read; ``again`` says how to get others."""

    def __init__(self, settings: AnswerFiles, task: Task) -> None:
        self.settings, self.task = settings, task
        names, more = task.label_names, len(task.label_names) > NAMED
        which = "a JSON list of any" if KINDS[task.kind].has_several else "one"
        asked = f"{which} of {', '.join(names[:NAMED])}{', …' * more}"
        if scores := task.score_range:
            asked = f"a number from {scores.min:.10g} to {scores.max:.10g}"
        self.again = (
            f"have the teacher answer again with {asked}, and put its file here; `distill teacher requests --format` "
            "asks for structured output."
        )

    def read(self, path: Path) -> tuple[Described, Iterator[GivenRows]]:
        """Read a file's metadata, and its rows, a few thousand at a time."""
        settings = self.settings
        # Several labels are a list: none is a whole reply.
        names = self.task.label_names if KINDS[self.task.kind].one_of else []
        described, rows = read_answers(path, names, settings.reply)
        classes = settings.classes or described.classes
        order = None if classes is None or self.task.score_range else _class_order(classes, self.task, str(path))

        def value_of(row: Given, where: str) -> np.ndarray:
            logits = self._logits(row, classes, order, where)
            if not np.isfinite(logits).all():
                raise PotstillError(
                    f"{where}: a value is not a finite number. Correct it, or give the reason in `error`."
                )
            if row.texts is not None and len(row.texts) != len(self.task.text):
                raise PotstillError(
                    f"{where}: {len(row.texts)} texts, but the task reads {len(self.task.text)} "
                    f"({', '.join(self.task.text)}). A pair has `text` and `text_pair`."
                )
            return logits

        return described, parts_of(path, rows, value_of)

    def _logits(self, row: Given, classes: list[str] | None, order: np.ndarray | None, where: str) -> np.ndarray:
        """Return a row's logits, float32 (classes,)."""
        task, several = self.task, KINDS[self.task.kind].has_several
        if task.score_range:
            return _score_of(row, task, where)
        if row.kind == "label" and several:
            marks = np.zeros(len(task.label_names))
            marks[_named_labels(row.value, task, where)] = 1.0
            return _clipped_logits((1.0 - SMOOTHING) * marks + SMOOTHING / 2)
        if row.kind == "label":
            number = _class_number(row.value, classes, task, where)
            return _logits_of(_smoothed(number, len(task.label_names)))
        values, named = _in_order(row.value, order, task, where)
        lacking = ", ".join(np.array(task.label_names)[~named])
        if several and lacking:
            raise PotstillError(
                f"{where}: nothing is said of {lacking}. Give a number for each label, or in "
                "`label` the list of those that apply."
            )
        if row.kind == "logits" and lacking:
            raise PotstillError(f"{where}: no logit for {lacking}. Give one for each class.")
        if row.kind == "logits":
            return _float32(values)
        if several:
            _check_shares(values, values > 1 + EXCESS, "each from 0 to 1", where)
            return _clipped_logits(values)
        return _logits_of(_completed(values, named, where))

    def described(self, table: KeyedTable) -> list[str]:
        """Return lines that describe what files contain."""
        lines = [", ".join(f"{n:,} {what}" for what, n in table.counts.items())]
        lines += [f"error, {n:,} rows: {reason}" for reason, n in frequent(table.errors)]
        lines += self._facts(table)
        return lines + [f"{name}: {value}" for name, value in table.provenance.items()]

    def _facts(self, table: KeyedTable) -> list[str]:
        """Return the distribution of the answers and weights."""
        logits, several = table[:], KINDS[self.task.kind].has_several
        if self.task.score_range:
            lines = [f"scores {logits.min():g} to {logits.max():g}, mean {logits.mean():.3f}"]
        else:
            chosen = logits > 0 if several else np.eye(logits.shape[1], dtype=bool)[logits.argmax(1)]
            counts = zip(self.task.label_names, chosen.sum(axis=0).tolist(), strict=True)
            named = ", ".join(f"{name} {count:,}" for name, count in counts)
            if several:
                lines = [f"labels: {named}; none {int((~chosen).all(axis=1).sum()):,}"]
                lines.append(f"labels per text: mean {chosen.sum() / len(logits):.2f}")
            else:
                sure = softmax(logits).max(1).mean()
                lines = [f"classes: {named}", f"probability of the class chosen: mean {sure:.3f}"]
                lines += self.bare_labels(table)
        if table.weights is not None:
            lines.append(f"weights {table.weights.min():g} to {table.weights.max():g}")
        return lines

    def bare_labels(self, table: KeyedTable) -> list[str]:
        """Return a line on the answers that are classes without probabilities, if there are any."""
        if not KINDS[self.task.kind].one_of:
            return []
        classes = len(self.task.label_names)
        bare = _logits_of(_smoothed(0, classes))
        count = int((table[:].max(axis=1) == bare[0]).sum())
        share = softmax(bare[None])[0, 0]
        note = f"bare labels, without probabilities: each counts as {share:.3f} for its class"
        return [f"{count:,} {note}"] if count else []


def _class_order(classes: Sequence[str], task: Task, where: str) -> np.ndarray:
    indices = [_class_index(name, task, where) for name in classes]
    for name, index in zip(classes, indices, strict=True):
        if indices.count(index) > 1:
            raise PotstillError(f"{where}: class {name!r} is listed twice. Name each once.")
    missing = [name for index, name in enumerate(task.label_names) if index not in indices]
    if missing:
        raise PotstillError(
            f"{where}: class {missing[0]!r} is missing from {', '.join(classes)}. Name every "
            "class of the task's `labels`."
        )
    return np.argsort(indices)


def _class_index(name: Any, task: Task, where: str, remedy: str = "") -> int:
    """Return the index of a class, whose name may differ in case and surrounding whitespace."""
    names = [*map(_plain, task.label_names)]
    if isinstance(name, str) and _plain(name) in names:
        return names.index(_plain(name))
    raise PotstillError(
        f"{where}: class {name!r} is unknown; the task's are {', '.join(task.label_names)}. Name "
        f"it as in `labels`, or correct it.{remedy}"
    )


def _class_number(value: Any, classes: Sequence[str] | None, task: Task, where: str) -> int:
    """Return the class index of a label: a class's name, or its index in the file's classes."""
    is_name = isinstance(value, str) and _plain(value) in map(_plain, task.label_names)
    if is_name or not _is_number(value):
        return _class_index(value, task, where)
    if classes is None:
        return _class_index(
            value, task, where, " A number needs `classes`, which it indexes; for `distill init`, --labels."
        )
    if float(value) not in range(len(classes)):
        raise PotstillError(
            f"{where}: label {value} is not an index of the classes {', '.join(classes)}, which "
            "are numbered from 0. Correct it."
        )
    return _class_index(classes[int(float(value))], task, where)


def _named_labels(value: Any, task: Task, where: str) -> list[int]:
    if not isinstance(value, list):
        entries = entries_of(_plain(str(value)), {*map(_plain, task.label_names)})
        value = [value] if entries is None else entries
    return [_class_index(name, task, where) for name in value]


def _completed(values: np.ndarray, named: np.ndarray, where: str) -> np.ndarray:
    """Return a complete distribution, float64 (classes,).

    The probability that the named classes leave over is spread evenly over the others; if all are
    named, it belongs to no class, and they are normalised to 1.

    :param values: probabilities, 0 for unnamed classes; :param named: the mask, bool (classes,).
    """
    total = float(values.sum())
    _check_shares(values[named], total > 1.0 + EXCESS, "from 0 to 1, together at most 1", where)
    if not named.all():
        # {spam: 0.1} leaves 0.9 to ham.
        return np.where(named, values / max(total, 1.0), max(0.0, 1.0 - total) / (~named).sum())
    if not total:
        raise PotstillError(
            f"{where}: the probabilities of all classes are 0. Correct them, or give the reason in `error`."
        )
    return values / total


def _check_shares(values: np.ndarray, is_excessive: np.ndarray | bool, rule: str, where: str) -> None:
    if (values < 0).any() or np.any(is_excessive):
        raise PotstillError(
            f"{where}: {values.round(4).tolist()} are not probabilities ({rule}). Give `logits`, or correct them."
        )


def _smoothed(number: int, classes: int) -> np.ndarray:
    """Return a bare label's smoothed distribution (Szegedy et al. 2016, section 7), (classes,)."""
    return (1.0 - SMOOTHING) * np.eye(classes)[number] + SMOOTHING / classes


def _logits_of(probs: np.ndarray) -> np.ndarray:
    """Return logarithms of probabilities, clipped at the floor, minus their mean: (classes,)."""
    logs = np.log(np.maximum(probs, FLOOR))
    return (logs - logs.mean()).astype(np.float32)


def _score_of(row: Given, task: Task, where: str) -> np.ndarray:
    value = row.value if row.kind == "label" else None
    if row.kind == "logits" and len(row.value) == 1:
        [value] = row.value.values() if isinstance(row.value, Mapping) else row.value
    if not _is_number(value):
        raise PotstillError(
            f"{where}: {task.label_names[0]} is a score, and this row has {row.kind} "
            f"{row.value!r:.40}. Give one number in `label` or `logits`."
        )
    scores = task.score_range
    if row.of_reply and not scores.min <= float(value) <= scores.max:
        raise PotstillError(f"{where}: not from {scores.min:.10g} to {scores.max:.10g}: {value}")
    return _float32(np.array([value], np.float64))


def _clipped_logits(shares: np.ndarray) -> np.ndarray:
    return _float32(logit(np.clip(shares, FLOOR, 1.0 - FLOOR)))


def _float32(values: np.ndarray) -> np.ndarray:
    """Return values as float32; what is beyond its range becomes infinite, and is refused later."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _in_order(value: Numbers, order: np.ndarray | None, task: Task, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a row's numbers in the order of the task's classes, and a mask of those it names."""
    classes = len(task.label_names)
    if isinstance(value, list):
        if order is None:
            raise PotstillError(
                f"{where}: a list of numbers, and nothing says which class is which. Name the "
                "`classes` in the file's metadata or in the teacher's row of params.yaml; for `distill init`, --labels."
            )
        if len(value) != classes:
            raise PotstillError(
                f"{where}: {len(value)} numbers for the {classes} classes "
                f"{', '.join(task.label_names)}. Give one for each."
            )
        return np.array(value, np.float64)[order], np.ones(classes, bool)
    values, named = np.zeros(classes), np.zeros(classes, bool)
    for name, number in value.items():
        index = _class_index(name, task, where)
        values[index], named[index] = values[index] + number, True
    return values, named


def _plain(name: str) -> str:
    return name.strip().casefold()


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False
