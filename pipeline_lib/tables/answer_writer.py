"""A student's answers as lines of text or JSON, and as a table, batch by batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.kind import LABEL, LABELS
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.base.text import printable
from pipeline_lib.tables.writer import cell_text, json_text, open_writer

if TYPE_CHECKING:
    import pyarrow as pa

BY, ERROR = "answered_by", "error"


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
    kind: str
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
        kind = KINDS[self.kind]
        for row, (outputs, has_answer) in enumerate(zip(self.outputs, answered(self.outputs), strict=True)):
            record = kind.record(outputs, self.names) if has_answer else kind.missing(self.names)
            fault = {ERROR: self.faults[row]} if row in self.faults else {}
            yield self._by(row) | record | fault

    def flat(self, prefix: str = "") -> dict[str, list[Any]]:
        """Return the answer columns by name, as they are written to CSV and Parquet; lists are in JSON.

        :param prefix: prepended to every name.
        """
        rows, kind = answered(self.outputs), KINDS[self.kind]
        columns = {
            name: _spread([cell_text(value) if isinstance(value, list) else value for value in values], rows)
            for name, values in kind.columns(self.outputs[rows], self.names).items()
        }
        if self.routed is not None:
            columns = {BY: [self._by(row)[BY] for row in range(len(rows))]} | columns
        if self.tells_faults:
            columns[ERROR] = [self.faults.get(row) for row in range(len(rows))]
        return {prefix + name: column for name, column in columns.items()}

    def _by(self, row: int) -> dict[str, str]:
        if self.routed is None:
            return {}
        return {BY: "teacher" if self.routed[row] else "student"}


def _spread(values: list[Any], rows: np.ndarray) -> list[Any]:
    left = iter(values)
    return [next(left) if row else None for row in rows]


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
        by = [answer[BY]] if BY in answer else []
        yield "\t".join([*KINDS[answers.kind].fields(answer, answers.names), *by, *sentences])


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
