"""Reading a teacher's answers from files: Parquet, Arrow, CSV, JSON Lines, a batch's output.

A row has a ``text`` (and ``text_pair``) and one of ``logits``, ``probs`` and ``label``; it may have
``weight``, ``coverage`` and ``error``.  Per-class numbers are a list, in the order of the file's
``classes``, or a mapping from names; in CSV also one column per class, ``probs.NAME``.
docs/teacher-files.md describes the schema.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.outputs.files.batch_output import (
    Asked,
    batch_line,
    read_batch_line,
    read_vllm_line,
)
from pipeline_lib.outputs.files.teacher_rows import (
    BATCHES,
    Described,
    described,
    format_of,
    rows_of,
)

ANSWERS = ("logits", "probs", "label")
"""The answer columns; a row has exactly one of them."""
COLUMNS = ("text", "text_pair", *ANSWERS, "weight", "coverage", "error")
Numbers = list[float] | dict[str, float]
"""One number per class: in the order of the file's classes, or by name."""


@dataclass(frozen=True)
class Given:
    """One row of a file.

    :ivar number: its line number in an editor; :ivar key: the content key, if the row has that
        instead of the text; :ivar kind: one of :data:`ANSWERS`; None: there is an ``error``.
    """

    number: int
    texts: tuple[str, ...] | None
    key: int | None
    kind: str | None
    value: Numbers | str | float | None
    weight: float | None = None
    coverage: float | None = None
    error: str | None = None


def read_answers(path: Path, format: str | None, asked: Asked) -> tuple[Described, Iterator[Given]]:
    """Read a file's metadata, and its rows one by one.

    :param format: None: from the suffix; :param asked: the task's classes, whose probabilities are
        read from a batch's tokens, or the range of its scores.
    :raises DistilleryError: naming the file, the row or column, and the remedy.
    """
    kind = format_of(path, format)
    rows = _batch_rows(path, kind, asked) if kind in BATCHES else _rows(path, kind)
    return described(path, kind), rows


def _rows(path: Path, kind: str) -> Iterator[Given]:
    def check(names: list[str]) -> None:
        _check_columns(path, names)

    plain = kind in ("csv", "tsv")
    for number, row in rows_of(path, kind, _is_ours, check):
        if "metadata" not in row:
            yield _given(path, number, row, plain)


def _batch_rows(path: Path, kind: str, asked: Asked) -> Iterator[Given]:
    read = read_batch_line if kind == "openai-batch" else read_vllm_line
    for number, line in rows_of(path, kind, _is_ours, lambda names: None):
        with batch_line(where := f"{path}: row {number}"):
            answer = read(line, asked, where)
        kind_of, value = ("probs", answer.probs) if answer.said is None else ("label", answer.said)
        yield Given(
            *(number, answer.texts, answer.key, None if answer.error else kind_of, value),
            error=answer.error,
            coverage=answer.coverage,
        )


def _is_ours(name: str) -> bool:
    return name in COLUMNS or name.partition(".")[0] in ANSWERS[:2]


def _check_columns(path: Path, names: list[str]) -> None:
    remedy = "docs/teacher-files.md has the columns; `distill teacher check` tries a file."
    if "text" not in names:
        raise DistilleryError(
            f"{path}: no column 'text'; there are {', '.join(map(repr, names)) or 'none'}. {remedy}"
        )
    if not any(name.partition(".")[0] in ANSWERS for name in names):
        raise DistilleryError(f"{path}: none of the columns {', '.join(ANSWERS)}. {remedy}")


def _given(path: Path, number: int, row: Mapping[str, Any], plain: bool = False) -> Given:
    """Validate and return one row.

    :param plain: whether all values are text, as in CSV.
    """
    where = f"{path}: row {number}"
    values = {name: value for name, value in row.items() if value is not None}
    for kind in ANSWERS[:2]:
        by_class = {n.partition(".")[2]: v for n, v in values.items() if n.startswith(f"{kind}.")}
        if by_class:
            values[kind] = by_class
    texts = tuple(values[name] for name in ("text", "text_pair") if name in values)
    if "text" not in values or not all(isinstance(text, str) and text.strip() for text in texts):
        raise DistilleryError(f"{where}: `text` is missing or not text. Fill it in.")
    number_of = {name: _number(values.get(name), name, where) for name in ("weight", "coverage")}
    if number_of["weight"] is not None and number_of["weight"] < 0:
        raise DistilleryError(f"{where}: `weight` is below 0. Correct it.")
    if number_of["coverage"] is not None and not 0.0 <= number_of["coverage"] <= 1.0:
        raise DistilleryError(f"{where}: `coverage` is not a share from 0 to 1. Correct it.")
    error = values.get("error")
    if error:
        return Given(number, texts, None, None, None, error=str(error), **number_of)
    kinds = [kind for kind in ANSWERS if kind in values]
    if len(kinds) != 1:
        present = " and ".join(kinds) or "none"
        raise DistilleryError(
            f"{where}: expected one of {', '.join(ANSWERS)}, found {present}. Keep one; in a row "
            "without an answer, give the reason in `error`."
        )
    [kind] = kinds
    value = values[kind]
    if kind != "label":
        value = _numbers(_parsed(value, where) if plain else value, where)
    return Given(number, texts, None, kind, value, error=None, **number_of)


def _parsed(value: Any, where: str) -> Any:
    """Parse a CSV's list or mapping, which is written as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise DistilleryError(
            f"{where}: {value!r:.40} is not a list of numbers ({error}). Write [0.1, 0.9], or a "
            "column for each class, as probs.NAME."
        ) from error


def _numbers(value: Any, where: str) -> Numbers:
    if isinstance(value, Mapping):
        # Arrow's structs have every name, with null for those that the row lacks.
        named = {name: _number(part, name, where) for name, part in value.items()}
        return {name: part for name, part in named.items() if part is not None}
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):  # a map of Arrow's
            return _numbers(dict(value), where)
        numbers = [_number(part, "a class", where) for part in value]
        if None in numbers:
            raise DistilleryError(f"{where}: a class has no number. Fill it in, or give `error`.")
        return numbers
    return [_number(value, "the answer", where)]


def _number(value: Any, name: str, where: str) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise DistilleryError(
            f"{where}: {name} is {value!r:.40}, not a finite number. Correct it, or give the "
            "reason in `error`."
        )
    return number
