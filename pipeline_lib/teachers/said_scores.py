"""The score that a language model's answer says in words: the one number in it."""

import re

from pipeline_lib.params import Range

_NUMBER = re.compile(r"[-+.,A-Za-z0-9]*[0-9][-+.,A-Za-z0-9]*")
"""A number with all that is written onto it: the 4 of GPT-4 or 4k is none by itself."""
_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2},[0-9]{3}")
_MINUS = str.maketrans("−–", "--")


def said_score(answer: str, scores: Range) -> float:
    """Return the one number that an answer holds, with a decimal point or a decimal comma.

    Other words may stand around it.  Where a comma may also be one of thousands, the reading that
    lies in the range is taken.

    :raises ValueError: saying why, if there is no number, more than one, or one outside the range.
    """
    found = _NUMBER.findall(answer.translate(_MINUS))
    if len(found) > 1:
        raise ValueError(f"more than one number: {answer!r:.60}")
    numbers = {number for own in found for number in _readings(own.rstrip(".,-+"))}
    if not numbers:
        raise ValueError(f"no number: {answer!r:.60}")
    inside = [number for number in numbers if scores.min <= number <= scores.max]
    if not inside:
        raise ValueError(f"not from {scores.min:.10g} to {scores.max:.10g}: {answer!r:.60}")
    if len(inside) > 1:
        raise ValueError(f"a comma of decimals or of thousands: {answer!r:.60}")
    return inside[0]


def _readings(written: str) -> set[float]:
    """Return what a number may mean: with a comma followed by three digits that is not certain."""
    forms = {written.replace(",", ".")}
    if _THOUSANDS.fullmatch(written):
        forms.add(written.replace(",", ""))
    try:
        return {float(form) for form in forms}
    except ValueError:
        return set()
