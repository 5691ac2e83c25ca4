"""Single rows for display: texts, changes, label, and the models' answers with probabilities.

These are plain values that :func:`dataclasses.asdict` turns into JSON.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_lib.base.kinds import KINDS, Classes
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.inspection.changes import RuleName, Sentence, rules_of, sentences_of
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.inspection.originals import Originals

DIGITS = 6
"""Decimals of numbers in rows, as in scores.json."""
Names = Sequence[str] | None
"""The task's class names by number, if known."""
Answering = Callable[[RowBatch], np.ndarray]
"""A student's answers to the rows of a batch: float32 (rows, classes), temperature-scaled."""
Features = Callable[[pa.Table], tuple[np.ndarray, np.ndarray]]
"""A student's answers to rows, float32 (rows, classes), temperature-scaled, and what its output layer makes them of,
float32 (rows, width)."""


@dataclass(frozen=True)
class Answer:
    """A model's answer to a row.

    :ivar answer: the class's name, or those of several labels, or a regression's score.
    :ivar probabilities: by class name, empty for a regression; :ivar entropy: theirs, in bits.
    """

    answer: str | float
    probabilities: dict[str, float]
    entropy: float | None


@dataclass(frozen=True)
class Original:
    """The original of a synthetic row, and the teacher's answer to it."""

    sentences: list[Sentence]
    teacher: Answer | None


@dataclass(frozen=True)
class InspectedRow:
    """One row.

    :ivar id: the set's folder and ``place``, which is ``shard:row``; :ivar key: its content key in hex, if it has one.
    :ivar rules: the rules that made it, or just ``original``; empty outside transfer sets.
    :ivar label: the class's name, or the score; None if hidden, and for synthetic rows.
    :ivar score: the measure by which a list selected the row, if one did.
    """

    id: str
    set: str
    place: str
    key: str | None
    sentences: list[Sentence]
    rules: list[RuleName]
    label: str | float | None
    teacher: Answer | None
    student: Answer | None
    original: Original | None
    score: float | None = None


def read_row(
    rows: JoinedRows,
    shard: int,
    row: int,
    names: Names = None,
    student: Answering | None = None,
    score: float | None = None,
) -> InspectedRow:
    """Read one row of a shard with everything that is known about it, a student's answer too."""
    batch = rows.row(shard, row)
    record = batch.table.to_pylist()[0]
    original = sentences = None
    if record.get("iteration"):
        source, logits = Originals(rows).of(batch)
        sentences = sentences_of(record, source)
        original = Original(sentences_of(source), answer(logits, names, rows.kind))
    sentences = sentences or sentences_of(record)
    location = rows.place(shard, row)
    return InspectedRow(
        id=f"{rows.name}/{location}",
        set=rows.name,
        place=location,
        key=f"{record['key']:016x}" if "key" in record else None,
        sentences=sentences,
        rules=rules_of(record, sentences),
        label=label_name(record.get("label"), names),
        teacher=answer(batch.logits, names, rows.kind),
        student=None if student is None else answer(student(batch), names, rows.kind),
        original=original,
        score=None if score is None else round(score, DIGITS),
    )


def answer(logits: np.ndarray | None, names: Names, kind: str = Classes.name) -> Answer | None:
    """Return the answer for one row's logits, shape (1, classes); None if there is none."""
    if logits is None or not answered(logits)[0]:
        return None
    of_kind = KINDS[kind]
    best = label_name(of_kind.decide(logits)[0].tolist(), names)
    if not of_kind.has_probabilities:
        return Answer(best, {}, None)
    shares = of_kind.probabilities(logits)
    named = {label_name(n, names): round(share, DIGITS) for n, share in enumerate(shares[0].tolist())}
    return Answer(best, named, round(float(of_kind.entropy_bits(shares)[0]), DIGITS))


NO_LABEL = "(none)"
"""What is shown of a row to which none of several labels applies."""


def label_name(label: float | Sequence[int] | None, names: Names) -> str | float | None:
    """Return a class's name, or its number as text if names are unknown; or the score.

    Of several labels, given as a 0 or 1 for each, the names of those that apply.
    """
    if label is None:
        return None
    if isinstance(label, Sequence):
        applying = (label_name(number, names) for number, mark in enumerate(label) if mark)
        return ", ".join(map(str, applying)) or NO_LABEL
    if isinstance(label, float):
        return round(label, DIGITS)
    return names[label] if names and 0 <= label < len(names) else str(label)
