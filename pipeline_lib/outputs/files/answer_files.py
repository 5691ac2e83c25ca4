"""Reading a teacher's answers from files: Parquet, Arrow, CSV, JSON Lines, a batch's output.

A row has a ``text`` (and ``text_pair``) and one of ``logits``, ``probs`` and ``label``; it may have ``weight``,
``coverage`` and ``error``.  Per-class numbers are a list, in the order of the file's ``classes``, or a mapping from
names; in CSV also one column per class, ``probs.NAME``. docs/teacher-files.md describes the schema.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.batch_output import Asked, read_batch_line, read_vllm_line
from pipeline_lib.outputs.files.given_rows import Given, check_text, read_rows
from pipeline_lib.outputs.files.teacher_rows import BATCHES, Described, described, format_of

ANSWERS = ("logits", "probs", "label")
"""The answer columns; a row has exactly one of them."""
COLUMNS = ("text", "text_pair", *ANSWERS, "weight", "coverage", "error")
MAX_WEIGHT = 1e6
"""A weight beyond it would leave nothing to the others, or overflow a loss."""
Numbers = list[float] | dict[str, float]
"""One number per class: in the order of the file's classes, or by name."""


def read_answers(path: Path, format: str | None, asked: Asked) -> tuple[Described, Iterator[tuple[int, Given]]]:
    """Read a file's metadata, and its rows one by one, with their line numbers in an editor.

    :param format: None: from the suffix; :param asked: the task's classes, whose probabilities are
        read from a batch's tokens, or the range of its scores.
    """
    format = format_of(path, format)
    read_line = read_vllm_line if format == "vllm" else read_batch_line
    of_batch = format in BATCHES
    parse = (lambda line, where: read_line(line, asked, where)) if of_batch else _given
    return described(path, format), read_rows(path, format, _is_ours, ANSWERS, parse)


def _is_ours(name: str) -> bool:
    return name in COLUMNS or name.partition(".")[0] in ANSWERS[:2]


def _given(row: Mapping[str, Any], where: str) -> Given:
    """Validate and return one row."""
    values = {name: value for name, value in row.items() if value is not None}
    for kind in ANSWERS[:2]:
        by_class = {n.partition(".")[2]: v for n, v in values.items() if n.startswith(f"{kind}.")}
        if by_class:
            values[kind] = by_class
    texts = tuple(values[name] for name in ("text", "text_pair") if name in values)
    for text in texts if "text" in values else (None,):
        check_text(text, where)
    numbers = {name: _number(values.get(name), name, where) for name in ("weight", "coverage")}
    weight, coverage = numbers.values()
    if weight is not None and not 0 <= weight <= MAX_WEIGHT:
        fault = "below 0" if weight < 0 else f"above {MAX_WEIGHT:g}"
        raise PotstillError(f"{where}: `weight` is {fault}. Correct it.")
    if coverage is not None and not 0.0 <= coverage <= 1.0:
        raise PotstillError(f"{where}: `coverage` is not a share from 0 to 1. Correct it.")
    error = values.get("error")
    if error:
        return Given(texts, error=str(error))
    kinds = [kind for kind in ANSWERS if kind in values]
    if len(kinds) != 1:
        present = " and ".join(kinds) or "none"
        raise PotstillError(
            f"{where}: expected one of {', '.join(ANSWERS)}, found {present}. Keep one; in a row "
            "without an answer, give the reason in `error`."
        )
    [kind] = kinds
    value = values[kind] if kind == "label" else _numbers(values[kind], where)
    return Given(texts, None, kind, value, weight, coverage)


def _numbers(value: Any, where: str) -> Numbers:
    if isinstance(value, str):  # CSV's lists and mappings are JSON
        try:
            value = json.loads(value)
        except ValueError as error:
            raise PotstillError(
                f"{where}: {value!r:.40} is not a list of numbers ({error}). Write [0.1, 0.9], or "
                "a column for each class, as probs.NAME."
            ) from error
    if isinstance(value, Mapping):
        # Arrow's structs have every name, with null for those that the row lacks.
        named = {name: _number(part, name, where) for name, part in value.items()}
        return {name: part for name, part in named.items() if part is not None}
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):  # a map of Arrow's
            return _numbers(dict(value), where)
        numbers = [_number(part, "a class", where) for part in value]
        if None in numbers:
            raise PotstillError(f"{where}: a class has no number. Fill it in, or give `error`.")
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
        raise PotstillError(
            f"{where}: {name} is {value!r:.40}, not a finite number. Correct it, or give the reason in `error`."
        )
    return number
