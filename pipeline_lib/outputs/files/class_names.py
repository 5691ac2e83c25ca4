"""A task's classes, and numbers, as a language model may write them."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_STRIPPED = " \t\r\n\f\v.,;:!?\"'`*_#~()[]{}<>«»“”‘’„。、，！：；？「」『』\u200b\ufeff"
_LISTED = re.compile(r"\(?(?:\d{1,2}|[A-Za-z])[.):]\s+(?=\S)")
_ESCAPES = re.compile(r"\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}")


@dataclass(frozen=True)
class KnownClasses:
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
def known_classes(names: tuple[str, ...]) -> KnownClasses:
    """Return classes by all forms of their names."""
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
    return KnownClasses(frozenset(names), alone, by_number, mention)


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
        raw = re.sub(rb"\\x([0-9a-fA-F]{2})", lambda m: bytes.fromhex(m[1].decode()), signs.encode())
        return raw.decode()
    except UnicodeError:
        return text


def as_number(value: Any) -> float | None:
    """Return a number, also one that is written as a text."""
    if isinstance(value, str):
        return number_in(value)
    return float(value) if isinstance(value, int | float) else None


def number_in(text: str) -> float | None:
    """Return the number that a whole text is."""
    try:
        number = float(text.strip(" \n\t\"'*`.()"))
    except ValueError:
        return None
    return int(number) if number.is_integer() else number


def lead(text: str) -> int:
    """Return how many signs of a text come before its first word."""
    return len(text) - len(text.lstrip(_STRIPPED))
