"""Rows of a teacher's answers: as people write them, and as language models reply.

A row has a ``text`` (and ``text_pair``) or a ``key``, and one of ``logits``, ``probs`` and ``label``; it may have
``weight`` and ``error``.  Per-class numbers are a list, in the order of the file's ``classes``, or a
mapping from names; in CSV also one column per class, ``probs.NAME``.  A line of a batch's output has the id of a
request and a reply, which is JSON with the same answer, or exactly a class.  docs/teacher-files.md describes both.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.kind import finite_number
from pipeline_lib.base.kinds.label_lists import bracketed
from pipeline_lib.outputs.files.batch_lines import is_line, read_line
from pipeline_lib.outputs.files.teacher_files import (
    ANSWERS,
    Described,
    Given,
    described,
    identified,
    in_reply,
    is_ours,
    read_rows,
    reason_of,
)

MAX_WEIGHT = 1e6
"""A weight beyond it would leave nothing to the others, or overflow a loss."""
Numbers = list[float] | dict[str, float]
"""One number per class: in the order of the file's classes, or by name."""


def read_answers(
    path: Path, names: Sequence[str] = (), reply: str | None = None
) -> tuple[Described, Iterator[tuple[int, Given]]]:
    """Read a file's metadata, and its rows one by one, with their line numbers in an editor.

    :param names: the task's classes, which may be whole replies; :param reply: the path to other providers' replies.
    """

    def parse(row: Mapping[str, Any], where: str) -> Given:
        is_row = any(is_ours(name) and name.partition(".")[0] in ANSWERS for name in row) or not is_line(row, reply)
        return _given(row, where) if is_row else _replied(row, names, reply, where)

    return described(path), read_rows(path, parse)


def named_classes(path: Path) -> list[str]:
    """Return the classes that a file of answers names; none if it has but numbers, or lists of them."""
    described, rows = read_answers(path)
    names: dict[str, None] = {}
    for _, row in rows:
        if isinstance(row.value, dict):
            names |= dict.fromkeys(row.value)
        elif row.kind == "label" and finite_number(str(row.value)) is None and bracketed(str(row.value)) is None:
            names[str(row.value)] = None
    return [*(described.classes or names)]


def _given(row: Mapping[str, Any], where: str) -> Given:
    values = {name: value for name, value in row.items() if value is not None}
    for kind in ANSWERS[:2]:
        by_class = {n.partition(".")[2]: v for n, v in values.items() if n.startswith(f"{kind}.")}
        if by_class:
            values[kind] = by_class
    answer = replace(identified(row, where), weight=_number(values.get("weight"), "weight", where))
    if answer.weight is not None and not 0 <= answer.weight <= MAX_WEIGHT:
        fault = "below 0" if answer.weight < 0 else f"above {MAX_WEIGHT:g}"
        raise PotstillError(f"{where}: `weight` is {fault}. Correct it.")
    if values.get("error"):
        return replace(answer, weight=None, error=reason_of(values["error"]))
    return _answered(answer, values, where)


def _answered(row: Given, values: Mapping[str, Any], where: str) -> Given:
    kinds = [kind for kind in ANSWERS if kind in values]
    if len(kinds) != 1:
        present = " and ".join(kinds) or "none"
        raise PotstillError(
            f"{where}: expected one of {', '.join(ANSWERS)}, found {present}. Keep one; in a row "
            "without an answer, give the reason in `error`."
        )
    [kind] = kinds
    return replace(row, kind=kind, value=values[kind] if kind == "label" else _numbers(values[kind], where))


def _replied(line: Mapping[str, Any], names: Sequence[str], path: str | None, where: str) -> Given:
    """Return a batch's line with the answer of its reply."""
    row, reply = read_line(line, where, path)
    if row.error is not None:
        return row
    try:
        values = _parsed(reply, names)
    except (ValueError, RecursionError):
        asked = "neither JSON nor a class, as `distill teacher requests --format` asks for"
        return replace(row, error=f"{asked}: {reply!r:.60}")
    return in_reply(replace(row, of_reply=True), where, lambda row: _answered(row, values, where))


def _parsed(reply: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """Return the columns that a reply gives: an object of JSON, or a whole label."""
    if isinstance(reply, str):
        alike = [name for name in names if name.strip().casefold() == reply.strip().casefold()]
        reply = alike[0] if alike else json.loads(reply)
    columns = reply if isinstance(reply, Mapping) else {"label": reply}
    asked = {kind.asked for kind in KINDS.values()}
    columns = {"label" if name in asked else name: value for name, value in columns.items()}
    # A class may be called 4.
    return {name: str(value) if type(value) is int else value for name, value in columns.items() if value is not None}


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
        named = {name: _number(number, name, where) for name, number in value.items()}
        return {name: number for name, number in named.items() if number is not None}
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):  # a map of Arrow's
            return _numbers(dict(value), where)
        numbers = [_number(number, "a class", where) for number in value]
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
