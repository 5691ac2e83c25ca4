"""The final answer in a language model's reply: after its thoughts, in JSON, or a sentence.

A class is taken only where it is clear that it is the answer; a reply that names several, or none,
has none.
"""

import ast
import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pipeline_lib.tables.label_lists import bracketed

_THOUGHT = "think|thinking|thought|thoughts|reasoning|analysis|reflection|scratchpad"
_OPENED = re.compile(rf"<(?:{_THOUGHT})>|◁think▷|\[THINK\]|<\|channel\|>analysis", re.IGNORECASE)
_CLOSED = re.compile(
    rf"</(?:{_THOUGHT})>|◁/think▷|\[/THINK\]|<\|channel\|>final<\|message\|>", re.IGNORECASE
)
_END = re.compile(r"(?:<\|[^|<>]*\|>|</s>|<eos>|<end_of_turn>)\Z")
_WRAPPED = (
    re.compile(r"```[\w+-]*\s(.*?)```", re.DOTALL),
    re.compile(r"<(\w+)>([^<>]*)</\1>"),
    re.compile(r"\\boxed\{(?:\\text\{)?([^{}]*)\}"),
)
"""A fenced block, a tag, a box: what encloses an answer; the last group is the answer."""
_WORDS = (
    "answer|label|class|category|classification|prediction|sentiment|intent|topic|verdict|result|"
    "output|conclusion|decision"
)
_SIGNS = r"[*_`\"']*(?:\s*[:：=]+|\s+is\b:?|\s*->)[*_\s]*"
_MARKER = re.compile(
    rf"\b(?:{_WORDS})\b{_SIGNS}|\bclassif\w+[^.\n]{{0,60}}?\bas\b:?[*_\s]*", re.IGNORECASE
)
"""Words that announce the answer."""
_LABELS_MARKER = re.compile(
    rf"\b(?:{_WORDS}|labels|answers|tags|categories)\b{_SIGNS}", re.IGNORECASE
)
_SCORE_MARKER = re.compile(rf"\b(?:{_WORDS}|score|rating)\b{_SIGNS}", re.IGNORECASE)
_ANSWER_KEY = re.compile(rf"{_WORDS}|predict|categor", re.IGNORECASE)
_JUST_ANSWER = re.compile(rf"(?:final|predicted)?[\s_-]*(?:{_WORDS})", re.IGNORECASE)
_SCORE_KEY = re.compile(rf"{_WORDS}|predict|score|rating", re.IGNORECASE)
_STRIPPED = " \t\r\n\f\v.,;:!?\"'`*_#~()[]{}<>«»“”‘’„。、，！：；？「」『』\u200b\ufeff"
_LISTED = re.compile(r"\(?(?:\d{1,2}|[A-Za-z])[.):]\s+(?=\S)")
_ESCAPES = re.compile(r"\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}")
_DEPTH = 3
LINES = 50
"""Lines at each end of a reply that may be a class alone."""
_TRIES = 50
"""Opening braces at which JSON may begin."""
EXCESS = 0.05
"""By how much a sum of scores may exceed 1, or differ from 100 %: models do not add them up."""


@dataclass(frozen=True)
class Stated:
    """An answer.

    :ivar value: a class's name, a number, or scores by class.
    :ivar start: where its text begins in the reply; None: unknown.
    """

    value: str | float | dict[str, float]
    start: int | None = None


@dataclass(frozen=True)
class _Json:
    """An answer in JSON: :ivar key: of the value; :ivar rank: how clearly it names an answer."""

    value: str | float | dict[str, float]
    key: str | None = None
    rank: int = 0


def final_parts(reply: str) -> list[tuple[int, str]]:
    """Return what may be a reply's answer, with offsets: what is enclosed, then all but thoughts.

    :raises ValueError: if it has only thoughts.
    """
    closed = [match.end() for match in _CLOSED.finditer(reply)]
    start, text = (closed[-1] if closed else 0), reply.rstrip()
    while end := _END.search(text):
        text = text[: end.start()].rstrip()
    if _OPENED.search(text, start) or (closed and not text[start:].strip()):
        raise ValueError(f"thoughts without an answer: {reply!r:.60}")
    enclosed = ([*pattern.finditer(text, start)][-1:] for pattern in _WRAPPED)
    lasts = [match for matches in enclosed for match in matches]
    parts = [(match.start(match.lastindex), match[match.lastindex]) for match in lasts]
    return [*parts, (start, text[start:])]


def stated_class(reply: str, names: Sequence[str]) -> Stated:
    """Return the class that a reply states, its number, or a score for each class.

    :raises ValueError: with the reason, if it states none, or more than one.
    """
    *enclosed, (start, text) = final_parts(reply)
    known = _known(tuple(names))
    for offset, part in enclosed:
        with suppress(ValueError):
            return _stated(offset, part, known)
    return _stated(start, text, known)


def stated_labels(reply: str, names: Sequence[str]) -> list[str] | dict[str, float]:
    """Return the labels that a reply lists, or a probability for each of them.

    A list is one in JSON, an object of truth values, or names between commas or on lines.

    :raises ValueError: with the reason, if it lists none, or something else.
    """
    known = _known(tuple(names))
    for _, part in final_parts(reply):
        for listed in (_labels_in_json(part, known), _labels_in_words(part, known)):
            if listed is not None:
                return listed
    raise ValueError(f"no list of labels: {reply.strip()!r:.60}")


_NOTHING = {"none", "no label", "no labels", "none of them", "none of these", "null", "n/a"}
"""What says that no label applies."""
_LIST = re.compile(r"\[[^\[\]]*\]")
_BETWEEN = re.compile(r"[,;|\n]|\band\b|^\s*[-*•]\s", re.MULTILINE)


def _labels_in_json(text: str, known: "_Known") -> list[str] | dict[str, float] | None:
    """Return the labels of a list, or of an object that has one or says yes or no to each."""
    parsed = _parsed(text)
    value = None if parsed is None else parsed[1]
    if isinstance(value, Mapping):
        marks = {name: mark for key, mark in value.items() if (name := known.match(str(key)))}
        if marks and all(isinstance(mark, bool) or mark in (0, 1) for mark in marks.values()):
            return [name for name, mark in marks.items() if mark]
        shares = {name: _as_number(mark) for name, mark in marks.items()}
        if len(shares) == len(known.exact) and all(
            share is not None and 0 <= share <= 1 for share in shares.values()
        ):
            return shares
        lists = [part for part in value.values() if isinstance(part, list)]
        value = lists[0] if len(lists) == 1 else None
    if value is None and (lists := _LIST.findall(text)):
        value = bracketed(lists[-1])
    if not isinstance(value, list):
        return None
    matched = [known.match(str(entry)) for entry in value]
    return None if None in matched else [*dict.fromkeys(matched)]


def _labels_in_words(text: str, known: "_Known") -> list[str] | None:
    """Return the labels that a whole text lists, or what follows its last announcement."""
    markers = [*_LABELS_MARKER.finditer(text)]
    for part in (text, text[markers[-1].end() :] if markers else text):
        if plain(part) in _NOTHING:
            return []
        entries = [entry for entry in _BETWEEN.split(part) if plain(entry)]
        matched = [known.match(entry) for entry in entries]
        if matched and None not in matched:
            return [*dict.fromkeys(matched)]
    return None


def _stated(start: int, text: str, known: "_Known") -> Stated:
    """Return the class that a part of a reply states; see :func:`stated_class`."""
    parsed = _parsed(text)
    if parsed is not None:
        begin, value = parsed
        if isinstance(value, str) and known.match(value) is None:
            return replace(_stated(0, value, known), start=None)  # JSON in JSON
        answer = _in_json(value, known, _DEPTH)
        if answer is not None:
            offset = _value_start(text, answer.key, begin)
            return Stated(answer.value, None if offset is None else start + offset)
    if known.match(text) is None and (number := _number(text)) is not None:
        return Stated(number)
    name, offset = _in_words(text, known)
    return Stated(name, start + offset)


def stated_number(start: int, text: str) -> Stated | None:
    """Return the only number of a part in JSON, by the key that names an answer; None if none.

    :param start: the part's offset in the reply.
    """
    parsed = _parsed(text)
    if parsed is None or not isinstance(parsed[1], Mapping):
        return None
    numbers = [*_numbers(parsed[1], _DEPTH)]
    named = [one for one in numbers if _SCORE_KEY.search(one[0])]
    if len(named or numbers) != 1:
        return None
    [(key, number)] = named or numbers
    offset = _value_start(text, key, parsed[0])
    return Stated(number, None if offset is None else start + offset)


def after_marker(text: str) -> str | None:
    """Return what follows the last word that announces a score, to the end of its line."""
    matches = [*_SCORE_MARKER.finditer(text)]
    return text[matches[-1].end() :].partition("\n")[0] if matches else None


@dataclass(frozen=True)
class _Known:
    """Classes: :ivar names: by their plain form, where only one has it."""

    exact: frozenset[str]
    names: Mapping[str, str]
    numbers: Mapping[str, str]
    mention: re.Pattern[str]

    def match(self, text: str) -> str | None:
        """Return the class that a text is: its name, if need be unescaped or with a list's sign."""
        for form in (text, _unescaped(text)):
            if form.strip() in self.exact:
                return form.strip()
            if name := self.names.get(plain(form)):
                return name
            listed = _LISTED.match(form.strip())
            if listed and (name := self.names.get(plain(form.strip()[listed.end() :]))):
                return name
        return self.numbers.get(plain(text))

    def mentions(self, text: str) -> list[tuple[int, str]]:
        """Return the classes that a text mentions, each with its offset."""
        matches = self.mention.finditer(text)
        pairs = ((match.start(), self.match(match[0])) for match in matches)
        return [(start, name) for start, name in pairs if name is not None]


@lru_cache(maxsize=8)
def _known(names: tuple[str, ...]) -> _Known:
    forms: dict[str, list[str]] = {}
    for name in names:
        forms.setdefault(plain(name), []).append(name)
    numbers = [re.findall(r"\d+", name) for name in names]
    by_number: dict[str, str] = {}
    if all(len(some) == 1 for some in numbers) and len({some[0] for some in numbers}) == len(names):
        # "2" stands for "2 stars", if every class has a number of its own.
        by_number = {some[0]: name for some, name in zip(numbers, names, strict=True)}
    longest = sorted((name.strip() for name in names if name.strip()), key=len, reverse=True)
    mention = re.compile("|".join(map(_bounded, longest)) or "(?!)", re.IGNORECASE)
    alone = {form: same[0] for form, same in forms.items() if form and len(same) == 1}
    return _Known(frozenset(names), alone, by_number, mention)


def _bounded(name: str) -> str:
    """Return the pattern of a name as a whole word; scripts without spaces have no such bounds."""
    before = r"(?<!\w)" if _has_bounds(name[0]) else ""
    after = r"(?!\w)" if _has_bounds(name[-1]) else ""
    spaced = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", name))) if name[1:] else ""
    return before + (spaced or re.escape(name)) + after


def _has_bounds(sign: str) -> bool:
    return sign.isalnum() and ord(sign) < 0x2E80


def plain(text: str) -> str:
    """Return a text without case, quotes and full stops around it, and the kind of its spaces."""
    normal = unicodedata.normalize("NFKC", text).replace("\ufe0f", "")  # an emoji's variant
    return re.sub(r"[\s_-]+", " ", normal.casefold()).strip(_STRIPPED)


def _unescaped(text: str) -> str:
    r"""Return a text whose bytes or characters are written out, as \xf0\x9f or \u00e9."""
    if not _ESCAPES.search(text):
        return text
    try:
        signs = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)
        signs = signs.encode("utf-16", "surrogatepass").decode("utf-16")
        raw = re.sub(
            rb"\\x([0-9a-fA-F]{2})", lambda m: bytes.fromhex(m[1].decode()), signs.encode()
        )
        return raw.decode()
    except UnicodeError:
        return text


def _in_words(text: str, known: _Known) -> tuple[str, int]:
    """Return the class that a sentence states, and its offset."""
    if name := known.match(text):
        mentions = known.mentions(text)
        return name, mentions[0][0] if mentions else _lead(text)
    lines = _lines(text)
    start, last = lines[-1]
    alone = {known.match(line): begin + _lead(line) for begin, line in lines}
    alone.pop(None, None)
    if len(alone) == 1 and (name := known.match(last)):
        return name, start + _lead(last)
    for marker in reversed([*_MARKER.finditer(text)]):
        rest = re.split(r"\n|(?<=\w)[.!?](?=\s|$)", text[marker.end() :])[0]
        if name := _leading(rest, known):
            return name, marker.end() + _lead(rest)
    if len(alone) == 1:
        return next(iter(alone.items()))
    colon = max(last.rfind(":"), last.rfind("："))
    rest = last[colon + 1 :]
    if colon >= 0 and not alone and (name := known.match(rest)):
        return name, start + colon + 1 + _lead(rest)
    mentioned = {name for _, name in known.mentions(text)}
    first = re.split(r"[\n.,;:(—–]|\s-\s", text.strip())[0]
    if (name := known.match(first)) and mentioned <= {name} and not alone:
        return name, _lead(text)
    reason = "more than one class" if len(mentioned) > 1 else "no class"
    raise ValueError(f"{reason}: {text.strip()!r:.60}")


def _lines(text: str) -> list[tuple[int, str]]:
    """Return the first and the last lines of a text that are not empty, with their offsets."""
    lines, start = [], 0
    for line in text.split("\n"):
        if line.strip():
            lines.append((start, line))
        start += len(line) + 1
    return lines[:LINES] + lines[LINES:][-LINES:] or [(0, text)]


def _lead(text: str) -> int:
    """Return how many signs of a text come before its first word."""
    return len(text) - len(text.lstrip(_STRIPPED))


def _leading(text: str, known: _Known) -> str | None:
    """Return the class with which a text begins, if it mentions no other."""
    if name := known.match(text):
        return name
    mentioned = known.mentions(text)
    if len({name for _, name in mentioned}) != 1:
        return None
    [(start, name), *_] = mentioned
    return name if not text[:start].strip(_STRIPPED) else None


def _parsed(text: str) -> tuple[int, Any] | None:
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


def _in_json(value: Any, known: _Known, depth: int, key: str | None = None) -> _Json | None:
    """Return the answer in a JSON value; None if there is none.

    :raises ValueError: if there are two.
    """
    rank = 0 if key is None or not _ANSWER_KEY.search(key) else 1
    rank += key is not None and _JUST_ANSWER.fullmatch(key) is not None
    if isinstance(value, str):
        answer = _of_string(value, known) if rank else known.match(value)
        return None if answer is None else _Json(answer, key, rank)
    if isinstance(value, bool):
        name = known.match(str(value))
        return _Json(name, key, rank) if name else None
    if isinstance(value, int | float):
        name = known.match(f"{value:g}")
        return _Json(name or value, key, rank) if name or rank or key is None else None
    if not depth or not isinstance(value, Mapping | list):
        return None
    if scores := _scores(value, known):
        return _Json(scores, key, rank)
    items = value.items() if isinstance(value, Mapping) else ((key, part) for part in value)
    answers, faults = [], []
    for name, part in items:
        try:
            answers.append(_in_json(part, known, depth - 1, name))
        except ValueError as error:
            faults.append(error)
    one = _one_of([answer for answer in answers if answer is not None], value)
    if faults and (one is None or not one.rank):
        raise faults[0]
    return one


def _of_string(text: str, known: _Known) -> str | float | None:
    """Return the class that a string in JSON states, or its number."""
    try:
        return _in_words(text, known)[0]
    except ValueError:
        return _number(text)


def _one_of(answers: Sequence[_Json], value: Any) -> _Json | None:
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


def _scores(value: Any, known: _Known) -> dict[str, float] | None:
    """Return a score for each class that an object, or a list of objects, scores.

    :raises ValueError: if they are no probabilities.
    """
    pairs: list[tuple[str | None, Any]] = []
    if isinstance(value, Mapping):
        pairs = [(known.match(key), number) for key, number in value.items()]
    elif all(isinstance(part, Mapping) for part in value):
        pairs = [pair for part in value for pair in _pairs(part, known)]
    numbers = {
        name: number
        for name, value in pairs
        if name is not None and (number := _as_number(value)) is not None
    }
    if not numbers:
        return None
    total = sum(numbers.values())
    if (
        total > 1 + EXCESS
        and abs(sum(_as_number(n) or 0.0 for _, n in pairs) - 100.0) <= 100 * EXCESS
    ):
        numbers, total = {name: n / 100.0 for name, n in numbers.items()}, total / 100.0
    if not math.isfinite(total) or min(numbers.values()) < 0 or not 0 < total <= 1 + EXCESS:
        raise ValueError(f"scores that are no probabilities: {value!r:.60}")
    return {name: number / max(1.0, total) for name, number in numbers.items()}


def _pairs(part: Mapping[str, Any], known: _Known) -> list[tuple[str | None, Any]]:
    """Return the class and score of an object such as ``{"label": …, "score": …}``."""
    names = [name for v in part.values() if isinstance(v, str) and (name := known.match(v))]
    numbers = [v for v in part.values() if isinstance(v, int | float)]
    return [(names[0], numbers[0])] if len(names) == len(numbers) == 1 else []


def _numbers(value: Mapping[str, Any], depth: int) -> Iterator[tuple[str, float]]:
    for key, part in value.items():
        if isinstance(part, Mapping) and depth:
            yield from _numbers(part, depth - 1)
        elif isinstance(part, str) and (number := _number(part)) is not None:
            yield key, number
        elif isinstance(part, int | float) and not isinstance(part, bool):
            yield key, float(part)


def _as_number(value: Any) -> float | None:
    """Return a number, also one that is written as a text."""
    if isinstance(value, str):
        return _number(value)
    return float(value) if isinstance(value, int | float) else None


def _number(text: str) -> float | None:
    """Return the number that a whole text is."""
    try:
        number = float(text.strip(" \n\t\"'*`.()"))
    except ValueError:
        return None
    return int(number) if number.is_integer() else number


def _value_start(text: str, key: str | None, begin: int) -> int | None:
    """Return where the value of a key begins in JSON, after its quote."""
    if key is None:
        return _lead(text)
    name = re.escape(json.dumps(key, ensure_ascii=False))
    matches = [*re.finditer(rf"{name}\s*:\s*\[?\s*\"?", text[begin:])]
    return begin + matches[-1].end() if matches else None
