"""The answer in JSON, or in Python's notation, that a language model writes: a class, or scores."""

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_lib.outputs.files.answers_in_words import ANNOUNCING, in_words
from pipeline_lib.outputs.files.class_names import KnownClasses, as_number, lead, number_in

_ANSWER_KEY = re.compile(rf"{ANNOUNCING}|predict|categor", re.IGNORECASE)
_JUST_ANSWER = re.compile(rf"(?:final|predicted)?[\s_-]*(?:{ANNOUNCING})", re.IGNORECASE)
_TRIES = 50
"""Opening braces at which JSON may begin."""
DEPTH = 3
"""How many objects and lists deep an answer may be."""
_EXCESS = 0.05
"""By how much a sum of scores may exceed 1, or differ from 100 %: models do not add them up."""


@dataclass(frozen=True)
class JsonAnswer:
    """An answer in JSON: :ivar key: of the value; :ivar rank: how clearly it names an answer."""

    value: str | float | dict[str, float]
    key: str | None = None
    rank: int = 0


def parsed_json(text: str) -> tuple[int, Any] | None:
    """Return the last JSON object or list in a text, and where it begins; None if there is none."""
    whole, decoder = text.strip(), json.JSONDecoder()
    try:
        return 0, json.loads(whole)
    except (ValueError, RecursionError):
        pass
    last, begin = None, -1
    for _ in range(_TRIES):
        begin = text.find("{", begin + 1)
        if begin < 0:
            return last
        try:
            value, begin_of_rest = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            value = _literal(text[begin : text.rfind("}") + 1])
            if value is None:
                continue
            return begin, value
        last, begin = (begin, value), begin_of_rest - 1
    return last


def _literal(text: str) -> Any:
    """Return an object in Python's notation, which some models write; None if it is none."""
    try:
        return ast.literal_eval(text[:10_000])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def in_json(value: Any, known: KnownClasses, depth: int, key: str | None = None) -> JsonAnswer | None:
    """Return the answer in a JSON value; None if there is none.

    :raises ValueError: if there are two.
    """
    rank = 0 if key is None or not _ANSWER_KEY.search(key) else 1
    rank += key is not None and _JUST_ANSWER.fullmatch(key) is not None
    if isinstance(value, str):
        answer = _of_string(value, known) if rank else known.match(value)
        return None if answer is None else JsonAnswer(answer, key, rank)
    if isinstance(value, bool):
        name = known.match(str(value))
        return JsonAnswer(name, key, rank) if name else None
    if isinstance(value, int | float):
        name = known.match(f"{value:g}")
        return JsonAnswer(name or value, key, rank) if name or rank or key is None else None
    if not depth or not isinstance(value, Mapping | list):
        return None
    if scores := _scores(value, known):
        return JsonAnswer(scores, key, rank)
    items = value.items() if isinstance(value, Mapping) else ((key, part) for part in value)
    answers, faults = [], []
    for name, part in items:
        try:
            answers.append(in_json(part, known, depth - 1, name))
        except ValueError as error:
            faults.append(error)
    one = _one_of([answer for answer in answers if answer is not None], value)
    if faults and (one is None or not one.rank):
        raise faults[0]
    return one


def _of_string(text: str, known: KnownClasses) -> str | float | None:
    """Return the class that a string in JSON states, or its number."""
    try:
        return in_words(text, known)[0]
    except ValueError:
        return number_in(text)


def _one_of(answers: Sequence[JsonAnswer], value: Any) -> JsonAnswer | None:
    """Return the answer that several values state together."""
    scored = [one for one in answers if isinstance(one.value, dict)]
    others = [one for one in answers if one not in scored]
    # A name beside its number is the answer.
    others = [one for one in others if one.rank and isinstance(one.value, str)] or others
    others = [one for one in others if one.rank == max(other.rank for other in others)]
    if len({one.value for one in others}) > 1 or len(scored) > 1:
        raise ValueError(f"more than one class: {json.dumps(value, ensure_ascii=False)!r:.60}")
    if scored:
        best = max(scored[0].value, key=scored[0].value.__getitem__)
        if others and isinstance(others[0].value, str) and others[0].value != best:
            raise ValueError(f"its label is not that of its highest score: {value!r:.60}")
        return scored[0]
    return others[-1] if others else None


def _scores(value: Any, known: KnownClasses) -> dict[str, float] | None:
    """Return a score for each class that an object, or a list of objects, scores.

    :raises ValueError: if they are no probabilities.
    """
    pairs: list[tuple[str | None, Any]] = []
    if isinstance(value, Mapping):
        pairs = [(known.match(key), number) for key, number in value.items()]
    elif all(isinstance(part, Mapping) for part in value):
        pairs = [pair for part in value for pair in _pairs(part, known)]
    numbers = {name: number for name, value in pairs if name is not None and (number := as_number(value)) is not None}
    if not numbers:
        return None
    total = sum(numbers.values())
    if total > 1 + _EXCESS and abs(sum(as_number(n) or 0.0 for _, n in pairs) - 100.0) <= 100 * _EXCESS:
        numbers, total = {name: n / 100.0 for name, n in numbers.items()}, total / 100.0
    if not math.isfinite(total) or min(numbers.values()) < 0 or not 0 < total <= 1 + _EXCESS:
        raise ValueError(f"scores that are no probabilities: {value!r:.60}")
    return {name: number / max(1.0, total) for name, number in numbers.items()}


def _pairs(part: Mapping[str, Any], known: KnownClasses) -> list[tuple[str | None, Any]]:
    """Return the class and score of an object such as ``{"label": …, "score": …}``."""
    names = [name for v in part.values() if isinstance(v, str) and (name := known.match(v))]
    numbers = [v for v in part.values() if isinstance(v, int | float)]
    return [(names[0], numbers[0])] if len(names) == len(numbers) == 1 else []


def numbers_in(value: Mapping[str, Any], depth: int) -> Iterator[tuple[str, float]]:
    """Yield the numbers of an object and of those in it, to a depth, with their keys."""
    for key, part in value.items():
        if isinstance(part, Mapping) and depth:
            yield from numbers_in(part, depth - 1)
        elif isinstance(part, str) and (number := number_in(part)) is not None:
            yield key, number
        elif isinstance(part, int | float) and not isinstance(part, bool):
            yield key, float(part)


def value_start(text: str, key: str | None, begin: int) -> int | None:
    """Return where the value of a key begins in JSON, after its quote."""
    if key is None:
        return lead(text)
    name = re.escape(json.dumps(key, ensure_ascii=False))
    matches = [*re.finditer(rf"{name}\s*:\s*\[?\s*\"?", text[begin:])]
    return begin + matches[-1].end() if matches else None
