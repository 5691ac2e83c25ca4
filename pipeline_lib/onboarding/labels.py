"""What the values of a label column mean: classes by name, or the range of a score."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.kind import MINUS_ONE, NO_VALUE, finite_number

Labels = dict[str, Any]
"""``labels`` of a task in params.yaml."""
_WHOLE = re.compile(r"^(-?\d+)\.0+$")
_COMMON = 0.75
"""If one class has more than this share, accuracy says little."""


def with_label(values: Sequence[str], names: Sequence[str] | None = None) -> list[str]:
    """Return the values of a label column that are labels, not marks of a missing one.

    ``-`` is a class beside ``+``.  -1 is a class, too, unless it is the only number below zero
    beside those of three classes or more, or of named ones, or beside scores.

    :param names: the names of 0, 1, 2, …, if the file gives them.
    """
    marks = NO_VALUE - ({"-"} if "+" in values else set())
    filled = [value for value in values if value.casefold() not in marks]
    numbers = {finite_number(value) for value in {*filled} - MINUS_ONE}
    is_class = None in numbers or any(number < 0 for number in numbers) or len(numbers) < 3
    return filled if is_class and names is None else [v for v in filled if v not in MINUS_ONE]


def classes_of(values: Sequence[str], names: Sequence[str] | None) -> Labels:
    """Return a class for each value; values that differ only in case are one class.

    So are 1 and 1.0, as many tools write 1.0 for 1 in a column with gaps.

    :param names: the names of 0, 1, 2, …, if the file gives them.
    """
    counts = Counter(with_label(values, names))
    distinct = sorted(counts, key=_order)
    if names is not None and all(value.isdecimal() and int(value) < len(names) for value in distinct):
        return {name: [str(index)] for index, name in enumerate(names) if str(index) in distinct}
    groups: dict[str, list[str]] = {}
    for value in distinct:
        groups.setdefault(_folded(value), []).append(value)
    return {_WHOLE.sub(r"\1", max(spellings, key=counts.__getitem__)): spellings for spellings in groups.values()}


def parse_labels(spec: str, values: Sequence[str]) -> Labels:
    """Return the classes that the user described: ``bad=1,2;good=4,5`` or ``bad=-4..-1;good=1..4``.

    Numbers that belong to no class, such as 3 above, are left out and counted; classes are then ranges.

    :param values: the label column's values; a class named without values stands for its own name.
    """
    labels: Labels = {}
    for entry in filter(None, (entry.strip() for entry in spec.split(";"))):
        name, sign, meaning = (piece.strip() for piece in entry.partition("="))
        if ".." in meaning:
            labels[name] = _range(meaning)
        else:
            labels[name] = [v.strip() for v in meaning.split(",")] if sign else [name]
    if len(labels) < 2:
        raise PotstillError(
            f"--labels: {spec!r} names {len(labels)} classes. Write 'bad=1,2;good=4,5', or ranges, "
            "'bad=-4..-1;good=1..4'."
        )
    return _as_ranges(labels, {value for value in values if value})


def score_range(values: Sequence[str], spec: str | None) -> Labels:
    """Return the range of a regression: the one given as ``0..5``, or the enclosing whole numbers."""
    if spec is not None:
        return _range(spec)
    numbers = [number for number in map(finite_number, with_label(values)) if number is not None]
    if len(set(numbers)) < 2:
        raise PotstillError("the label column does not have two different numbers. Name another with --label.")
    low, high = min(numbers), max(numbers)
    if high - low >= 0.5:
        low, high = math.floor(low), math.ceil(high)
    return {"min": float(low), "max": float(high)}


def metrics_of(kind: str, counts: Sequence[int]) -> tuple[list[str], int | None]:
    """Return the metrics, of which the first selects, and the number of the class for f1.

    :param counts: rows per class, in the order of the classes.
    """
    if kind == "regression":
        return ["pearson", "spearman"], None
    if kind == "multilabel":
        # The first needs no decisions: it says which student ranks best, whatever the thresholds.
        return ["average_precision", "f1_micro", "f1_macro"], None
    if sum(counts) and max(counts) > _COMMON * sum(counts):
        return ["f1", "accuracy"], counts.index(min(counts)) if len(counts) == 2 else None
    return ["accuracy"], None


def _folded(value: str) -> str:
    return _WHOLE.sub(r"\1", value.casefold())


def _as_ranges(labels: Labels, values: set[str]) -> Labels:
    """Return classes of numbers as ranges, if some numbers belong to none of them."""
    claimed = {value for members in labels.values() if isinstance(members, list) for value in members}
    numbers = {value: finite_number(value) for value in values | claimed}
    if any(isinstance(m, dict) for m in labels.values()) or not values - claimed or None in numbers.values():
        return labels
    ranges = {}
    for name, members in labels.items():
        values_of_class = {numbers[value] for value in members}
        low, high = min(values_of_class), max(values_of_class)
        if any(low <= number <= high for number in {*numbers.values()} - values_of_class):
            return labels
        ranges[name] = {"min": low, "max": high}
    return ranges


def _order(value: str) -> tuple[float, str, str]:
    parsed = finite_number(value)
    return (math.inf if parsed is None else parsed, value.casefold(), value)


def _range(spec: str) -> Labels:
    low, _, high = spec.partition("..")
    bounds = {"min": finite_number(low.strip()), "max": finite_number(high.strip())}
    if None in bounds.values():
        raise PotstillError(f"--labels: {spec!r} is not a range of numbers. Write a range such as 0..5.")
    return bounds
