"""The final answer in a language model's reply: after its thoughts, in JSON, or a sentence.

A class is taken only where it is clear that it is the answer; a reply that names several, or none, has none.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pipeline_lib.base.kinds.label_lists import bracketed
from pipeline_lib.outputs.files.answers_in_json import DEPTH, in_json, numbers_in, parsed_json, value_start
from pipeline_lib.outputs.files.answers_in_words import ANNOUNCING, SIGNS, in_words
from pipeline_lib.outputs.files.class_names import KnownClasses, as_number, known_classes, number_in, plain

_THOUGHT = "think|thinking|thought|thoughts|reasoning|analysis|reflection|scratchpad"
_OPENED = re.compile(rf"<(?:{_THOUGHT})>|◁think▷|\[THINK\]|<\|channel\|>analysis", re.IGNORECASE)
_CLOSED = re.compile(rf"</(?:{_THOUGHT})>|◁/think▷|\[/THINK\]|<\|channel\|>final<\|message\|>", re.IGNORECASE)
_END = re.compile(r"(?:<\|[^|<>]*\|>|</s>|<eos>|<end_of_turn>)\Z")
_WRAPPED = (
    re.compile(r"```[\w+-]*\s(.*?)```", re.DOTALL),
    re.compile(r"<(\w+)>([^<>]*)</\1>"),
    re.compile(r"\\boxed\{(?:\\text\{)?([^{}]*)\}"),
)
"""A fenced block, a tag, a box: what encloses an answer; the last group is the answer."""
_LABELS_MARKER = re.compile(rf"\b(?:{ANNOUNCING}|labels|answers|tags|categories)\b{SIGNS}", re.IGNORECASE)
_SCORE_MARKER = re.compile(rf"\b(?:{ANNOUNCING}|score|rating)\b{SIGNS}", re.IGNORECASE)
_SCORE_KEY = re.compile(rf"{ANNOUNCING}|predict|score|rating", re.IGNORECASE)


@dataclass(frozen=True)
class Stated:
    """An answer.

    :ivar value: a class's name, a number, or scores by class.
    :ivar start: where its text begins in the reply; None: unknown.
    """

    value: str | float | dict[str, float]
    start: int | None = None


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
    known = known_classes(tuple(names))
    for offset, part in enclosed:
        with suppress(ValueError):
            return _stated(offset, part, known)
    return _stated(start, text, known)


def stated_labels(reply: str, names: Sequence[str]) -> list[str] | dict[str, float]:
    """Return the labels that a reply lists, or a probability for each of them.

    A list is one in JSON, an object of truth values, or names between commas or on lines.

    :raises ValueError: with the reason, if it lists none, or something else.
    """
    known = known_classes(tuple(names))
    for _, part in final_parts(reply):
        for listed in (_labels_in_json(part, known), _labels_in_words(part, known)):
            if listed is not None:
                return listed
    raise ValueError(f"no list of labels: {reply.strip()!r:.60}")


_NOTHING = {"none", "no label", "no labels", "none of them", "none of these", "null", "n/a"}
"""What says that no label applies."""
_LIST = re.compile(r"\[[^\[\]]*\]")
_BETWEEN = re.compile(r"[,;|\n]|\band\b|^\s*[-*•]\s", re.MULTILINE)


def _labels_in_json(text: str, known: KnownClasses) -> list[str] | dict[str, float] | None:
    """Return the labels of a list, or of an object that has one or says yes or no to each."""
    parsed = parsed_json(text)
    value = None if parsed is None else parsed[1]
    if isinstance(value, Mapping):
        marks = {name: mark for key, mark in value.items() if (name := known.match(str(key)))}
        if marks and all(isinstance(mark, bool) or mark in (0, 1) for mark in marks.values()):
            return [name for name, mark in marks.items() if mark]
        shares = {name: as_number(mark) for name, mark in marks.items()}
        if len(shares) == len(known.exact) and all(share is not None and 0 <= share <= 1 for share in shares.values()):
            return shares
        lists = [part for part in value.values() if isinstance(part, list)]
        value = lists[0] if len(lists) == 1 else None
    if value is None and (lists := _LIST.findall(text)):
        value = bracketed(lists[-1])
    if not isinstance(value, list):
        return None
    matched = [known.match(str(entry)) for entry in value]
    return None if None in matched else [*dict.fromkeys(matched)]


def _labels_in_words(text: str, known: KnownClasses) -> list[str] | None:
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


def _stated(start: int, text: str, known: KnownClasses) -> Stated:
    """Return the class that a part of a reply states; see :func:`stated_class`."""
    parsed = parsed_json(text)
    if parsed is not None:
        begin, value = parsed
        if isinstance(value, str) and known.match(value) is None:
            return replace(_stated(0, value, known), start=None)  # JSON in JSON
        answer = in_json(value, known, DEPTH)
        if answer is not None:
            offset = value_start(text, answer.key, begin)
            return Stated(answer.value, None if offset is None else start + offset)
    if known.match(text) is None and (number := number_in(text)) is not None:
        return Stated(number)
    name, offset = in_words(text, known)
    return Stated(name, start + offset)


def stated_number(start: int, text: str) -> Stated | None:
    """Return the only number of a part in JSON, by the key that names an answer; None if none.

    :param start: the part's offset in the reply.
    """
    parsed = parsed_json(text)
    if parsed is None or not isinstance(parsed[1], Mapping):
        return None
    numbers = [*numbers_in(parsed[1], DEPTH)]
    named = [one for one in numbers if _SCORE_KEY.search(one[0])]
    if len(named or numbers) != 1:
        return None
    [(key, number)] = named or numbers
    offset = value_start(text, key, parsed[0])
    return Stated(number, None if offset is None else start + offset)


def after_marker(text: str) -> str | None:
    """Return what follows the last word that announces a score, to the end of its line."""
    matches = [*_SCORE_MARKER.finditer(text)]
    return text[matches[-1].end() :].partition("\n")[0] if matches else None
