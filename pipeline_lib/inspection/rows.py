"""Single rows as they are shown: texts, changes, label, and everyone's answers with probabilities.

Plain values: :func:`dataclasses.asdict` makes JSON of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline_lib.base.probabilities import answered, entropy_bits, softmax
from pipeline_lib.inspection.changes import RuleName, Sentence, rules_of, sentences_of
from pipeline_lib.inspection.originals import Originals
from pipeline_lib.inspection.sets import Batch, JoinedSet

DIGITS = 6
"""Decimals of numbers in rows, as in scores.json."""
Names = Sequence[str] | None
"""The task's class names by number, where they are known."""
Student = Callable[[Batch], np.ndarray]
"""A student's answers to the rows of a batch: float32 (rows, classes), temperature and all."""
Embed = Callable[[Batch, str], np.ndarray]
"""Sentence vectors of one side of a batch: float32 (rows, width)."""


@dataclass(frozen=True)
class Answer:
    """What a model says to a row.

    :ivar answer: the class's name, or the score of a regression.
    :ivar probabilities: by class name; empty of a regression. :ivar entropy: theirs, in bits.
    """

    answer: str | float
    probabilities: dict[str, float]
    entropy: float | None


@dataclass(frozen=True)
class Original:
    """What a synthetic row was made from, and what the teacher says to that."""

    sentences: list[Sentence]
    teacher: Answer | None


@dataclass(frozen=True)
class Row:
    """One row.

    :ivar id: the set's folder and ``place``; no two rows have the same.
    :ivar place: ``shard:row``, as `distill shards show` prints it.
    :ivar key: the content key of the row's words, in hex; None where the set has none.
    :ivar rules: by which it was made, ``original`` alone if by none; empty of what is no
        transfer set.
    :ivar label: the class's name, or the score; None where it is hidden, and of synthetic rows.
    :ivar score: what the row was chosen by, where it was.
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
    rows: JoinedSet,
    shard: int,
    row: int,
    names: Names = None,
    student: Student | None = None,
    score: float | None = None,
) -> Row:
    """Read one row with all that is known of it.

    :param row: its number in the shard.
    :param student: whose answer is wanted beside the teacher's.
    """
    batch = rows.row(shard, row)
    record = batch.table.to_pylist()[0]
    original = sentences = None
    if record.get("iteration"):
        source, logits = Originals(rows).of(batch)
        sentences = sentences_of(record, source)
        original = Original(sentences_of(source), answer(logits, names))
    sentences = sentences or sentences_of(record)
    place = rows.place(shard, row)
    return Row(
        id=f"{rows.name}/{place}",
        set=rows.name,
        place=place,
        key=f"{record['key']:016x}" if "key" in record else None,
        sentences=sentences,
        rules=rules_of(record, sentences),
        label=label_name(record.get("label"), names),
        teacher=answer(batch.logits, names),
        student=None if student is None else answer(student(batch), names),
        original=original,
        score=None if score is None else round(score, DIGITS),
    )


def answer(logits: np.ndarray | None, names: Names) -> Answer | None:
    """Return the answer of one row's logits, shape (1, classes); None where there is none."""
    if logits is None or not answered(logits)[0]:
        return None
    if logits.shape[1] == 1:
        return Answer(round(float(logits[0, 0]), DIGITS), {}, None)
    shares = softmax(logits)
    best = label_name(int(shares.argmax()), names)
    named = {
        label_name(n, names): round(share, DIGITS) for n, share in enumerate(shares[0].tolist())
    }
    return Answer(best, named, round(float(entropy_bits(shares)[0]), DIGITS))


def label_name(label: float | None, names: Names) -> str | float | None:
    """Return a class's name, or its number as text where the names are unknown; or the score."""
    if label is None:
        return None
    if isinstance(label, float):
        return round(label, DIGITS)
    return names[label] if names and 0 <= label < len(names) else str(label)
