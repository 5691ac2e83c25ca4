"""Tasks whose labels are classes, of which one applies to each row."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, Field

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.calibration import (
    COVERAGES,
    calibration_errors,
    log_losses,
    reliability,
    selective_accuracy,
)
from pipeline_lib.base.kinds.kind import (
    MINUS_ONE,
    NO_VALUE,
    Meaning,
    Range,
    ScoreSamples,
    TaskKind,
    average_precision,
    check_column,
    check_labels,
    check_order,
    finite_number,
    mean_of,
    ratio,
    row_counts,
)
from pipeline_lib.base.text import composed

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

_CONTROLS = {"Cc", "Zl", "Zp"}
AUPRC = "auprc"
"""Of two classes: the average precision of the positive one, which needs no threshold."""
OF_POSITIVE = {"f1", AUPRC}
"""Metrics of one class, if there are two."""


def check_classes(labels: dict[str, list[str] | Range]) -> dict[str, list[str] | Range]:
    """Check that classes can be told apart, and that no value belongs to two; ValueError for the first fault."""
    names: dict[str, str] = {}
    classes: dict[str, str] = {}
    for name, meaning in labels.items():
        if not name.strip() or any(unicodedata.category(sign) in _CONTROLS for sign in name):
            raise ValueError(
                f"{name!r} is no name of a class: it is empty, or has a line break or another "
                "control character. Rename it."
            )
        if other := names.get(name.strip().casefold()):
            raise ValueError(f"{other!r} and {name!r} read alike. Rename one, or join them.")
        names[name.strip().casefold()] = name
        for raw in [] if isinstance(meaning, Range) else meaning:
            if raw in classes:
                raise ValueError(f"{raw!r} is listed under {classes[raw]} and {name}. Keep one.")
            classes[raw] = name
    _check_ranges({name: meaning for name, meaning in labels.items() if isinstance(meaning, Range)})
    return labels


def check_names(labels: dict[str, list[str]]) -> dict[str, list[str]]:
    """Check that labels can be told apart, whose values may be the same; ValueError for the first fault."""
    check_classes({name: [] for name in labels})
    return labels


def _check_ranges(ranges: dict[str, Range]) -> None:
    ordered = sorted(ranges, key=lambda name: ranges[name].min)
    for name in ordered:
        if ranges[name].min > ranges[name].max:
            raise ValueError(f"{name}: min is above max. Swap them.")
    for lower, upper in pairwise(ordered):
        if ranges[upper].min <= ranges[lower].max:
            raise ValueError(
                f"the ranges of {lower} and {upper} share {ranges[upper].min:g}; both ends belong to a range. Move one."
            )


def check_filled(task: Any) -> None:
    """Check that every label has values, if something is labelled."""
    empty = [name for name, values in task.labels.items() if values == []]
    if empty and task.label_columns:
        raise ValueError(f"`labels`: {empty[0]} has no values. Name some, or leave it out.")


@dataclass(frozen=True)
class LabelMap(Meaning):
    """What raw label values mean: ``values`` are exact strings, ``ranges`` (min, max, class)."""

    names: list[str]
    values: dict[str, int]
    ranges: list[tuple[float, float, int]]

    @classmethod
    def of(cls, labels: Mapping[str, list[str] | Range]) -> "LabelMap":
        """Build the map from ``labels`` of a task; a class's number is its position."""
        values: dict[str, int] = {}
        ranges: list[tuple[float, float, int]] = []
        for number, meaning in enumerate(labels.values()):
            if isinstance(meaning, Range):
                ranges.append((meaning.min, meaning.max, number))
            else:
                values |= dict.fromkeys(map(composed, meaning), number)
        return cls(list(labels), values, ranges)

    def classify(self, raw: str) -> int | None:
        """Return the class number of a raw value, or None if no label claims it."""
        raw = composed(raw)
        if raw in self.values or not self.ranges:
            return self.values.get(raw)
        value = finite_number(raw)
        if value is None:
            return None
        return next((c for low, high, c in self.ranges if low <= value <= high), None)

    def hides(self, raw: str) -> bool:
        """Return whether an unclaimed raw value marks a missing label, such as GLUE's -1.

        If a range extends below zero, -1 is a number like any other.
        """
        signed = any(low < 0 for low, _, _ in self.ranges)
        return raw.casefold() in NO_VALUE or (raw in MINUS_ONE and not signed)

    def __str__(self) -> str:
        ranges = [f"{low:g} to {high:g}" for low, high, _ in self.ranges]
        return ", ".join([*map(repr, self.values), *ranges])


class Classes(TaskKind):
    """Class numbers, and a logit for each class.

    ``positive`` of params.yaml names the label whose F1 is reported; null: the second of two.
    """

    name = "classification"
    problem_type = "single_label_classification"
    metrics: ClassVar[Mapping[str, str]] = {
        "accuracy": "an accuracy",
        "f1": "an F1",
        "matthews_correlation": "a Matthews correlation",
        AUPRC: "an area under the precision-recall curve",
    }
    settings = Annotated[dict[str, list[str] | Range], Field(min_length=2), AfterValidator(check_classes)]
    has_positive = True
    has_threshold = True

    def check(self, task: Any) -> None:
        """Check the classes, their values, and the positive one."""
        check_filled(task)
        check_column(task)
        if AUPRC in task.metrics and len(task.labels) != 2:
            raise ValueError(f"`metrics`: {AUPRC} is of two labels, and here are {len(task.labels)}. Leave it out")
        if task.positive is None:
            return
        if task.positive not in task.labels:
            raise ValueError(f"`positive`: no label {task.positive!r}; there are {', '.join(task.labels)}")
        if not OF_POSITIVE & {*task.metrics} or len(task.labels) != 2:
            raise ValueError(f"`positive` goes with the metrics f1 and {AUPRC} of two labels; else it is null")

    def positive_class(self, task: Any) -> int:
        """Return the number of the class whose F1 is reported if there are two."""
        return 1 if task.positive is None else [*task.labels].index(task.positive)

    def f1_label(self, task: Any) -> str | None:
        """Return the name of that class, or None where no F1 of one class is reported."""
        of_one = OF_POSITIVE & {*task.metrics} and len(task.labels) == 2
        return [*task.labels][self.positive_class(task)] if of_one else None

    def meaning(self, task: Any) -> LabelMap:
        """Return the class of each raw value, or range of numbers."""
        return LabelMap.of(task.labels)

    def label_type(self, labels: int) -> "pa.DataType":
        """Return the type of class numbers."""
        import pyarrow as pa

        return pa.int32()

    def decide(self, outputs: np.ndarray) -> np.ndarray:
        """Return class numbers, int64."""
        return outputs.argmax(axis=1)

    def loss(self, outputs: "torch.Tensor", labels: "torch.Tensor") -> "torch.Tensor":
        """Return the cross-entropy against class numbers."""
        import torch.nn.functional as F  # noqa: N812

        return F.cross_entropy(outputs, labels)

    def shifts(self, labels: np.ndarray, outputs: np.ndarray, metric: str, positive: int) -> np.ndarray:
        """Return what makes the second of two classes best for the metric."""
        margins = (outputs[:, 1] - outputs[:, 0]).astype(np.float64)
        return np.array([0.0, best_threshold(margins, labels, metric, positive)])

    def score(self, metric: str, labels: np.ndarray, outputs: np.ndarray, positive: int = 1) -> float:
        """Return a metric; ``f1`` is that of ``positive`` for two classes, and the mean over all for more."""
        if metric == AUPRC:
            return float(_areas(labels, outputs[None], positive, np.ones((1, len(labels))))[0, 0])
        classes = outputs.shape[1]
        cells = np.bincount(labels * classes + self.decide(outputs), minlength=classes * classes)
        return float(self.of_confusion(metric, cells.reshape(classes, classes), positive))

    def of_confusion(self, metric: str, confusion: np.ndarray, positive: int) -> np.ndarray:
        """Return a metric of confusion matrices: see :func:`from_confusion`."""
        return from_confusion(metric, confusion, positive)

    def compared(self, outputs: np.ndarray) -> np.ndarray:
        """Return the answers; of two classes the outputs, by which rows are ranked."""
        return outputs if outputs.shape[1] == 2 else self.decide(outputs)

    def resampled(
        self, metric: str, labels: np.ndarray, answers: np.ndarray, classes: int, positive: int, chosen: np.ndarray
    ) -> np.ndarray:
        """Return a metric of every seed on samples of the rows."""
        if metric == AUPRC:
            return _areas(labels, answers, positive, row_counts(chosen, len(labels)))
        answers = answers.argmax(axis=-1) if answers.ndim == 3 else answers
        cells = labels * classes + answers
        size = classes * classes
        counts = np.stack([_counts(cells[:, rows], size) for rows in chosen])
        return self.of_confusion(metric, counts.reshape(*counts.shape[:2], classes, classes), positive)

    def agreement(self, labels: np.ndarray, outputs: np.ndarray) -> float:
        """Return the accuracy."""
        return float((self.decide(outputs) == check_labels(labels, outputs)).mean())

    def check_answers(self, origin: Any, labels: np.ndarray, outputs: np.ndarray, names: Sequence[str]) -> None:
        """Check that they are no worse than the most frequent class, and in the order of the classes."""
        shares = _counts((labels * len(names) + self.decide(outputs))[None], len(names) ** 2) / len(labels)
        check_order(origin, shares.reshape(len(names), -1), np.bincount(labels).max() / len(labels), len(labels), names)

    def detail_samples(self, labels: np.ndarray, outputs: np.ndarray) -> dict[str, ScoreSamples]:
        """Return the negative log-likelihood and the expected calibration error."""
        losses = np.stack([log_losses(labels, one) for one in outputs])
        return {"nll": mean_of(losses), "ece": calibration_errors(labels, outputs)}

    def details(self, labels: np.ndarray, outputs: np.ndarray) -> dict[str, float]:
        """Return them, and the accuracy on the most confident rows."""
        selective = {n: selective_accuracy(labels, outputs, c) for n, c in COVERAGES.items()}
        return super().details(labels, outputs) | selective

    def recall(self, labels: np.ndarray, outputs: np.ndarray) -> dict[int, float]:
        """Return the recall of each class; those without a row are left out."""
        rows, correct = np.bincount(labels), np.bincount(labels, weights=self.decide(outputs) == labels)
        return {int(number): float(correct[number] / rows[number]) for number in np.flatnonzero(rows)}

    def floor(self, names: Sequence[str], labels: np.ndarray) -> tuple[str, np.ndarray]:
        """Return the most frequent class."""
        majority = int(np.bincount(labels, minlength=len(names)).argmax())
        return names[majority], np.eye(len(names))[majority]

    def bins(self, labels: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean confidence and accuracy by bin."""
        return reliability(labels, outputs)


def _areas(labels: np.ndarray, outputs: np.ndarray, positive: int, counts: np.ndarray) -> np.ndarray:
    """Return the area under each seed's precision-recall curve on every sample, (samples, seeds)."""
    marks = (labels == positive)[:, None].astype(np.float64)
    margins = outputs[..., positive] - outputs[..., 1 - positive]
    return np.stack([average_precision(marks, one[:, None], counts) for one in margins], axis=1)


def _counts(cells: np.ndarray, size: int) -> np.ndarray:
    """Return how often each seed has each cell of its confusion matrix, (seeds, cells)."""
    seeds = np.arange(len(cells))[:, None] * size
    flat = np.bincount((cells + seeds).ravel(), minlength=len(cells) * size)
    return flat.reshape(len(cells), size)


def from_confusion(metric: str, confusion: np.ndarray, positive: int = 1) -> np.ndarray:
    """Return ``metric`` of every confusion matrix, float64.

    :param confusion: counts, shape (..., classes, classes): label first, prediction second.
    """
    counts = confusion.astype(np.float64)
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    actual, predicted, rows = counts.sum(-1), counts.sum(-2), counts.sum((-2, -1))
    if metric == "accuracy":
        return hits.sum(-1) / rows
    if metric == "f1":
        each = ratio(2 * hits, actual + predicted)
        return each[..., positive] if counts.shape[-1] == 2 else each.mean(-1)
    if metric == "matthews_correlation":
        # The multi-class form (Gorodkin 2004), of which the binary one is a special case.
        covariance = hits.sum(-1) * rows - (actual * predicted).sum(-1)
        spread = (rows**2 - (predicted**2).sum(-1)) * (rows**2 - (actual**2).sum(-1))
        return ratio(covariance, np.sqrt(spread))
    raise PotstillError(f"metric {metric!r}: take one of {', '.join(Classes.metrics)}.")


def best_threshold(values: np.ndarray, labels: np.ndarray, metric: str, positive: int = 1) -> float:
    """Return the threshold at which "class 1 if the value is above" scores best.

    It may be above or below all values.

    :param values: float (rows,); :param labels: 0 or 1, (rows,).
    """
    order = np.argsort(-values, kind="stable")
    ordered, rows = values[order], len(labels)
    hits = np.concatenate([[0], np.cumsum(labels[order] == 1)])
    ones, above = int(hits[-1]), np.arange(rows + 1)
    # One confusion matrix per number of values above: label first, answer second.
    confusion = np.empty((rows + 1, 2, 2))
    confusion[:, 1, 1], confusion[:, 0, 1] = hits, above - hits
    confusion[:, 1, 0], confusion[:, 0, 0] = ones - hits, rows - ones - (above - hits)
    scores = from_confusion(metric, confusion, positive)
    # Equal values cannot be separated.
    scores[1:-1][ordered[:-1] == ordered[1:]] = -np.inf
    bounds = np.concatenate([[ordered[0] + 2.0], ordered, [ordered[-1] - 2.0]])
    best = int(scores.argmax())
    return float((bounds[best] + bounds[best + 1]) / 2)
