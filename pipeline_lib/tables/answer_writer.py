"""Writes a student's answers as text lines, JSON, CSV or Parquet, batch by batch."""

import csv
import json
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.probabilities import softmax

if TYPE_CHECKING:
    import pyarrow as pa

BY, LABEL, PROBABILITY = "answered_by", "label", "probability"
ENDINGS = (".csv", ".jsonl", ".parquet")
DIGITS = 6


@dataclass(frozen=True)
class AnsweredBatch:
    """A batch of rows and the answers to them.

    :ivar columns: the rows' own columns, by name.
    :ivar names: class names, or the name of a regression's score.
    :ivar outputs: logits or scores, float (rows, outputs); NaN marks a row without an answer.
    :ivar routed: whether the teacher answered, bool (rows,); None if nothing is routed.
    """

    columns: dict[str, list[Any]]
    names: list[str]
    outputs: np.ndarray
    routed: np.ndarray | None = None

    def records(self, prefix: str = "") -> Iterator[dict[str, Any]]:
        """Yield each row as a JSON object.

        :param prefix: prepended to every name that is not one of the row's own columns.
        """
        for row, answer in enumerate(self.by_row()):
            columns = {name: values[row] for name, values in self.columns.items()}
            yield columns | {prefix + name: value for name, value in answer.items()}

    def by_row(self) -> Iterator[dict[str, Any]]:
        """Yield each row's answer as a JSON object, without the row's own columns."""
        shares = softmax(self.outputs)
        for row, logits in enumerate(self.outputs):
            yield self._by(row) | self._answer(logits, shares[row])

    def flat(self, prefix: str = "") -> dict[str, list[Any]]:
        """Return the answer columns by name, as they are written to CSV and Parquet.

        :param prefix: prepended to every name.
        """
        answered = ~np.isnan(self.outputs).any(axis=1)

        def values(numbers: np.ndarray) -> list[float | None]:
            return [round(float(v), DIGITS) if a else None for v, a in zip(numbers, answered)]  # noqa: B905

        if len(self.names) == 1:
            return {prefix + self.names[0]: values(self.outputs[:, 0])}
        shares = softmax(self.outputs)
        best = np.where(answered, shares.argmax(1), 0)
        labels = [self.names[b] if a else None for b, a in zip(best, answered, strict=True)]
        columns = {LABEL: labels, PROBABILITY: values(shares.max(1))}
        columns |= {f"{PROBABILITY}_{n}": values(shares[:, c]) for c, n in enumerate(self.names)}
        if self.routed is not None:
            columns = {BY: [self._by(row)[BY] for row in range(len(answered))]} | columns
        return {prefix + name: column for name, column in columns.items()}

    def _by(self, row: int) -> dict[str, str]:
        if self.routed is None:
            return {}
        return {BY: "teacher" if self.routed[row] else "student"}

    def _answer(self, logits: np.ndarray, shares: np.ndarray) -> dict[str, Any]:
        missing = bool(np.isnan(logits).any())
        if len(self.names) == 1:
            return {self.names[0]: None if missing else round(float(logits[0]), DIGITS)}
        if missing:
            return {LABEL: None}
        best = int(shares.argmax())
        by_name = zip(self.names, shares, strict=True)
        return {
            LABEL: self.names[best],
            PROBABILITY: round(float(shares[best]), DIGITS),
            "probabilities": {name: round(float(share), DIGITS) for name, share in by_name},
            "logits": [round(float(value), DIGITS) for value in logits],
        }


def text_lines(answers: AnsweredBatch) -> Iterator[str]:
    """Yield tab-separated lines: label, probability and sentences, or score and sentences."""
    for row, answer in enumerate(answers.by_row()):
        texts = (_as_text(values[row]) or "" for values in answers.columns.values())
        sentences = [text.replace("\n", " ") for text in texts]
        if len(answers.names) == 1:
            score = answer[answers.names[0]]
            yield "\t".join(["" if score is None else f"{score:.4f}", *sentences])
            continue
        share = answer.get(PROBABILITY)
        by = [answer[BY]] if BY in answer else []
        fields = [answer[LABEL] or "", "" if share is None else f"{share:.4f}"]
        yield "\t".join([*fields, *by, *sentences])


def json_lines(answers: AnsweredBatch, prefix: str) -> Iterator[str]:
    """Yield each row as JSON.

    :param prefix: prepended to the names of answers.
    :raises DistilleryError: if an answer has the name of a column.
    """
    _require_apart(answers, prefix)
    for record in answers.records(prefix):
        yield _as_json(record)


@contextmanager
def answer_writer(
    path: Path, prefix: str, types: "dict[str, pa.DataType]"
) -> Iterator[Callable[[AnsweredBatch], None]]:
    """Yield a function that writes answers batch by batch; the file appears once it is complete.

    :param prefix: prepended to the names of answer columns.
    :param types: Parquet types of the rows' own columns, where known; others become text.
    :raises DistilleryError: if an answer has the name of a column, or the suffix is unknown.
    """
    require_ending(path)
    open_ = {".csv": _open_csv, ".jsonl": _open_jsonl, ".parquet": _open_parquet}[path.suffix]
    with atomic_path(path) as temporary, open_(temporary, prefix, types) as write:
        yield write


def require_ending(path: Path) -> None:
    """Check that a file's suffix is one of the formats in which answers are written.

    :raises DistilleryError: if it is not.
    """
    if path.suffix not in ENDINGS:
        raise DistilleryError(f"{path}: give a name that ends in {', '.join(ENDINGS)}.")


@contextmanager
def _open_jsonl(path: Path, prefix: str, _: object) -> Iterator[Callable[[AnsweredBatch], None]]:
    with open(path, "w", encoding="utf-8", newline="\n") as sink:

        def write(answers: AnsweredBatch) -> None:
            for line in json_lines(answers, prefix):
                sink.write(line + "\n")

        yield write


@contextmanager
def _open_csv(path: Path, prefix: str, _: object) -> Iterator[Callable[[AnsweredBatch], None]]:
    with open(path, "w", encoding="utf-8", newline="") as sink:
        writer = csv.writer(sink, lineterminator="\n")

        def write(answers: AnsweredBatch) -> None:
            _require_apart(answers, prefix)
            columns = answers.columns | answers.flat(prefix)
            if not sink.tell():
                writer.writerow(columns)
            texts = ([_as_text(value) for value in values] for values in columns.values())
            writer.writerows(zip(*texts, strict=True))

        yield write


@contextmanager
def _open_parquet(
    path: Path, prefix: str, types: "dict[str, pa.DataType]"
) -> Iterator[Callable[[AnsweredBatch], None]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with ExitStack() as stack:
        writers: list[pq.ParquetWriter] = []

        def write(answers: AnsweredBatch) -> None:
            _require_apart(answers, prefix)
            inputs = {
                name: pa.array(values, types[name])
                if name in types
                else pa.array([_as_text(value) for value in values], pa.string())
                for name, values in answers.columns.items()
            }
            named = {prefix + BY, prefix + LABEL}
            outputs = {
                name: pa.array(values, pa.string() if name in named else pa.float64())
                for name, values in answers.flat(prefix).items()
            }
            table = pa.table(inputs | outputs)
            if not writers:
                writers.append(stack.enter_context(pq.ParquetWriter(path, table.schema)))
            writers[0].write_table(table)

        yield write


def _require_apart(answers: AnsweredBatch, prefix: str) -> None:
    names = {*answers.flat(prefix), *(prefix + name for name in ("probabilities", "logits"))}
    both = [name for name in answers.columns if name in names]
    if both:
        raise DistilleryError(
            f"column {both[0]!r} is in the file already, and an answer has the same name. Give the "
            "answers' names a prefix, for example --prefix predicted_."
        )


def _as_text(value: Any) -> str | None:
    """Return a value as text; anything that is not text becomes JSON, and NaN is missing."""
    value = _finite(value)
    return value if value is None or isinstance(value, str) else _as_json(value)


def _as_json(value: Any) -> str:
    return json.dumps(_finite(value), ensure_ascii=False, default=str)


def _finite(value: Any) -> Any:
    """Return a value with None for NaN and infinities, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return value
