"""A student's answers as lines of text or JSON, and as a table, batch by batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.probabilities import Kind, probabilities
from pipeline_lib.base.text import printable
from pipeline_lib.tables.writer import cell_text, json_text, open_writer

if TYPE_CHECKING:
    import pyarrow as pa

BY, LABEL, PROBABILITY, ERROR = "answered_by", "label", "probability", "error"
LABELS = "labels"
DIGITS = 6


@dataclass(frozen=True)
class AnsweredBatch:
    """A batch of rows and the answers to them.

    :ivar columns: the rows' own columns, by name.
    :ivar names: class names, or the name of a regression's score.
    :ivar kind: what answers: a class, a score, or any number of labels.
    :ivar outputs: logits or scores, float (rows, outputs); NaN marks a row without an answer.
    :ivar routed: whether the teacher answered, bool (rows,); None if nothing is routed.
    :ivar faults: why rows could not be read, by their position here.
    :ivar tells_faults: whether tables have a column for that.
    """

    columns: dict[str, list[Any]]
    names: list[str]
    kind: Kind
    outputs: np.ndarray
    routed: np.ndarray | None = None
    faults: dict[int, str] = field(default_factory=dict)
    tells_faults: bool = False

    def records(self, prefix: str = "") -> Iterator[dict[str, Any]]:
        """Yield each row as a JSON object.

        :param prefix: prepended to every name that is not one of the row's own columns.
        """
        for row, answer in enumerate(self.by_row()):
            columns = {name: values[row] for name, values in self.columns.items()}
            yield columns | {prefix + name: value for name, value in answer.items()}

    def by_row(self) -> Iterator[dict[str, Any]]:
        """Yield each row's answer as a JSON object, without the row's own columns."""
        shares = probabilities(self.outputs, self.kind)
        for row, logits in enumerate(self.outputs):
            fault = {ERROR: self.faults[row]} if row in self.faults else {}
            yield self._by(row) | self._answer(logits, shares[row]) | fault

    def flat(self, prefix: str = "") -> dict[str, list[Any]]:
        """Return the answer columns by name, as they are written to CSV and Parquet.

        :param prefix: prepended to every name.
        """
        answered = ~np.isnan(self.outputs).any(axis=1)

        def values(numbers: np.ndarray) -> list[float | None]:
            return [round(float(v), DIGITS) if a else None for v, a in zip(numbers, answered)]  # noqa: B905

        reasons = [self.faults.get(row) for row in range(len(answered))]
        why: dict[str, list[Any]] = {prefix + ERROR: reasons} if self.tells_faults else {}
        if self.kind == "regression":
            return {prefix + self.names[0]: values(self.outputs[:, 0])} | why
        shares = probabilities(self.outputs, self.kind)
        columns: dict[str, list[Any]]
        if self.kind == "multilabel":
            lists = map(self._applying, self.outputs)
            columns = {LABELS: [None if one is None else json_text(one) for one in lists]}
        else:
            best = np.where(answered, shares.argmax(1), 0)
            labels = [self.names[b] if a else None for b, a in zip(best, answered, strict=True)]
            columns = {LABEL: labels, PROBABILITY: values(shares.max(1))}
        columns |= {f"{PROBABILITY}_{n}": values(shares[:, c]) for c, n in enumerate(self.names)}
        if self.routed is not None:
            columns = {BY: [self._by(row)[BY] for row in range(len(answered))]} | columns
        return {prefix + name: column for name, column in columns.items()} | why

    def _by(self, row: int) -> dict[str, str]:
        if self.routed is None:
            return {}
        return {BY: "teacher" if self.routed[row] else "student"}

    def _applying(self, logits: np.ndarray) -> list[str] | None:
        """Return the labels that apply to a row; None if it has no answer."""
        if np.isnan(logits).any():
            return None
        return [name for name, value in zip(self.names, logits, strict=True) if value > 0]

    def _answer(self, logits: np.ndarray, shares: np.ndarray) -> dict[str, Any]:
        missing = bool(np.isnan(logits).any())
        if self.kind == "regression":
            return {self.names[0]: None if missing else round(float(logits[0]), DIGITS)}
        several = self.kind == "multilabel"
        if missing:
            return {LABELS if several else LABEL: None}
        best = int(shares.argmax())
        by_name = zip(self.names, shares, strict=True)
        label = {LABEL: self.names[best], PROBABILITY: round(float(shares[best]), DIGITS)}
        return ({LABELS: self._applying(logits)} if several else label) | {
            "probabilities": {name: round(float(share), DIGITS) for name, share in by_name},
            "logits": [round(float(value), DIGITS) for value in logits],
        }


def text_lines(answers: AnsweredBatch) -> Iterator[str]:
    """Yield tab-separated lines: label, probability and sentences, or score and sentences.

    Of several labels, each that applies is followed by its probability.

    They are for people: control characters in texts are escaped.
    """
    for row, answer in enumerate(answers.by_row()):
        texts = [cell_text(values[row]) or "" for values in answers.columns.values()]
        if ERROR in answer:
            texts = [f"({answer[ERROR]})"]
        sentences = [printable(text.replace("\n", " ")) for text in texts]
        if answers.kind == "regression":
            score = answer[answers.names[0]]
            yield "\t".join(["" if score is None else f"{score:.4f}", *sentences])
            continue
        if answers.kind == "multilabel":
            shares = answer.get("probabilities", {})
            named = [f"{printable(n)} {shares[n]:.4f}" for n in answer[LABELS] or ()]
            nothing = "" if answer[LABELS] is None else "(none)"
            yield "\t".join([", ".join(named) or nothing, *sentences])
            continue
        share = answer.get(PROBABILITY)
        by = [answer[BY]] if BY in answer else []
        fields = [printable(answer[LABEL] or ""), "" if share is None else f"{share:.4f}"]
        yield "\t".join([*fields, *by, *sentences])


def json_lines(answers: AnsweredBatch, prefix: str) -> Iterator[str]:
    """Yield each row as JSON.

    :param prefix: prepended to the names of answers.
    """
    _require_apart(answers, prefix)
    return map(json_text, answers.records(prefix))


@contextmanager
def answer_writer(
    path: Path, prefix: str, types: "dict[str, pa.DataType]", raw_cells: bool = False
) -> Iterator[Callable[[AnsweredBatch], None]]:
    """Yield a function that writes answers batch by batch; the file appears once it is complete.

    :param prefix: prepended to the names of answer columns.
    :param types: Parquet types of the rows' own columns, where known; others become text.
    :param raw_cells: see :func:`~pipeline_lib.tables.writer.open_writer`.
    """
    with open_writer(path, raw_cells=raw_cells) as write:

        def write_answers(answers: AnsweredBatch) -> None:
            _require_apart(answers, prefix)
            write(_table(answers, prefix, types), answers.records(prefix))

        yield write_answers


def _table(answers: AnsweredBatch, prefix: str, types: "dict[str, pa.DataType]") -> "pa.Table":
    import pyarrow as pa

    inputs = {
        name: pa.array(values, types[name])
        if name in types
        else pa.array([cell_text(value) for value in values], pa.string())
        for name, values in answers.columns.items()
    }
    named = {prefix + name for name in (BY, LABEL, LABELS, ERROR)}
    outputs = {
        name: pa.array(values, pa.string() if name in named else pa.float64())
        for name, values in answers.flat(prefix).items()
    }
    return pa.table(inputs | outputs)


def _require_apart(answers: AnsweredBatch, prefix: str) -> None:
    names = {*answers.flat(prefix), *(prefix + name for name in ("probabilities", "logits"))}
    both = [name for name in answers.columns if name in names]
    if both:
        raise PotstillError(
            f"column {both[0]!r} is in the file already, and an answer has the same name. Give the "
            "answers' names a prefix, for example --prefix predicted_."
        )
