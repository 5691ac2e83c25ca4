"""The score in a language model's text answer: the only number in it."""

import re

from pipeline_lib.params import Range

_NUMBER = re.compile(r"[-+.,A-Za-z0-9]*[0-9][-+.,A-Za-z0-9]*")
"""A number with everything attached to it: the 4 of GPT-4 or 4k is not a number by itself."""
_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2},[0-9]{3}")
_MINUS = str.maketrans("−–", "--")


def said_score(answer: str, scores: Range) -> float:
    """Return the only number in an answer, with a decimal point or a decimal comma.

    It may be surrounded by other words.  If a comma could also separate thousands, the reading
    within the range is used.

    :raises ValueError: with the reason, if there is no number, more than one, or one out of range.
    """
    matches = _NUMBER.findall(answer.translate(_MINUS))
    if len(matches) > 1:
        raise ValueError(f"more than one number: {answer!r:.60}")
    numbers = {number for written in matches for number in _readings(written.rstrip(".,-+"))}
    if not numbers:
        raise ValueError(f"no number: {answer!r:.60}")
    inside = [number for number in numbers if scores.min <= number <= scores.max]
    if not inside:
        raise ValueError(f"not from {scores.min:.10g} to {scores.max:.10g}: {answer!r:.60}")
    if len(inside) > 1:
        raise ValueError(f"a decimal comma or a thousands separator: {answer!r:.60}")
    return inside[0]


def _readings(written: str) -> set[float]:
    """Return a number's possible readings: a comma followed by three digits is ambiguous."""
    forms = {written.replace(",", ".")}
    if _THOUSANDS.fullmatch(written):
        forms.add(written.replace(",", ""))
    try:
        return {float(form) for form in forms}
    except ValueError:
        return set()
