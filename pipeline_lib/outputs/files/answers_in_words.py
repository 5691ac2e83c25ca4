"""The class that a sentence states: alone on a line, announced by a word, or the only one named."""

import re

from pipeline_lib.outputs.files.class_names import KnownClasses, lead

ANNOUNCING = (
    "answer|label|class|category|classification|prediction|sentiment|intent|topic|verdict|result|output|conclusion|"
    "decision"
)
SIGNS = r"[*_`\"']*(?:\s*[:：=]+|\s+is\b:?|\s*->)[*_\s]*"
_MARKER = re.compile(rf"\b(?:{ANNOUNCING})\b{SIGNS}|\bclassif\w+[^.\n]{{0,60}}?\bas\b:?[*_\s]*", re.IGNORECASE)
"""Words that announce the answer."""
_LINES = 50
"""Lines at each end of a reply that may be a class alone."""


def in_words(text: str, known: KnownClasses) -> tuple[str, int]:
    """Return the class that a sentence states, and its offset."""
    if name := known.match(text):
        mentions = known.mentions(text)
        return name, mentions[0][0] if mentions else lead(text)
    lines = _lines(text)
    start, last = lines[-1]
    alone = {known.match(line): begin + lead(line) for begin, line in lines}
    alone.pop(None, None)
    if len(alone) == 1 and (name := known.match(last)):
        return name, start + lead(last)
    for marker in reversed([*_MARKER.finditer(text)]):
        rest = re.split(r"\n|(?<=\w)[.!?](?=\s|$)", text[marker.end() :])[0]
        if name := _leading(rest, known):
            return name, marker.end() + lead(rest)
    if len(alone) == 1:
        return next(iter(alone.items()))
    colon = max(last.rfind(":"), last.rfind("："))
    rest = last[colon + 1 :]
    if colon >= 0 and not alone and (name := known.match(rest)):
        return name, start + colon + 1 + lead(rest)
    mentioned = {name for _, name in known.mentions(text)}
    first = re.split(r"[\n.,;:(—–]|\s-\s", text.strip())[0]
    if (name := known.match(first)) and mentioned <= {name} and not alone:
        return name, lead(text)
    reason = "more than one class" if len(mentioned) > 1 else "no class"
    raise ValueError(f"{reason}: {text.strip()!r:.60}")


def _lines(text: str) -> list[tuple[int, str]]:
    """Return the first and the last lines of a text that are not empty, with their offsets."""
    lines, start = [], 0
    for line in text.split("\n"):
        if line.strip():
            lines.append((start, line))
        start += len(line) + 1
    return lines[:_LINES] + lines[_LINES:][-_LINES:] or [(0, text)]


def _leading(text: str, known: KnownClasses) -> str | None:
    """Return the class with which a text begins, if it mentions no other."""
    if name := known.match(text):
        return name
    mentioned = known.mentions(text)
    if len({name for _, name in mentioned}) != 1:
        return None
    [(start, name), *_] = mentioned
    return name if lead(text[:start]) == start else None
