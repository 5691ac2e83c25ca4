"""Tasks whose rows have any number of labels, or none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, Field

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.calibration import reliability
from pipeline_lib.base.kinds.classes import Classes, best_threshold, check_classes, check_filled, check_names
from pipeline_lib.base.kinds.kind import (
    LABELS,
    MINUS_ONE,
    NO_VALUE,
    Meaning,
    Raw,
    ScoreSamples,
    TaskKind,
    average_precision,
    check_order,
    numbers_of,
    ratio,
    row_counts,
    share_columns,
)
from pipeline_lib.base.kinds.label_lists import entries_of
from pipeline_lib.base.kinds.probabilities import entropy_bits, of_two, sigmoid
from pipeline_lib.base.text import composed, printable

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

NO = ("0", "0.0", "false", "no")
"""What a column of a single label says where a row lacks it, in lower case."""


@dataclass(frozen=True)
class LabelMarks(Meaning):
    """What raw values mean of which a row has several: by label, the values that say it applies.

    They are the entries of one cell, or the values of a column for each label.
    """

    ranges: ClassVar[Sequence[tuple[float, float, int]]] = ()
    names: list[str]
    values: list[list[str]]

    def classify(self, raw: Raw) -> tuple[int, ...] | None:
        """Return 0 or 1 for each label, or None if some value is unknown or missing."""
        if isinstance(raw, str):
            entries = entries_of(composed(raw), {value for values in self.values for value in values})
            if entries is None:
                return None
            return tuple(int(not {*entries}.isdisjoint(values)) for values in self.values)
        marks = tuple(_mark(cell, values) for cell, values in zip(raw, self.values, strict=True))
        return None if None in marks else marks

    def hides(self, raw: Raw) -> bool:
        """Return whether an unclaimed raw value marks missing labels: that of a cell will do."""
        return any(cell.casefold() in NO_VALUE or cell in MINUS_ONE for cell in self.cells(raw))

    def cells(self, raw: Raw) -> list[str]:
        """Return the cells that are not understood."""
        if isinstance(raw, str):
            return [raw]
        return [cell for cell, values in zip(raw, self.values, strict=True) if _mark(cell, values) is None]

    def __str__(self) -> str:
        return ", ".join(map(repr, dict.fromkeys(value for values in self.values for value in values)))


def _mark(cell: str, values: Sequence[str]) -> int | None:
    if cell in values:
        return 1
    return 0 if cell.casefold() in NO else None


class LabelSets(TaskKind):
    """A 0 or 1 for each label, uint8 (rows, labels), and a logit for each.

    ``label`` of params.yaml lists a column per label, in the order of ``labels``, whose values say that a row has
    it; or names one column of lists, in which ``labels`` says which values mean which label.
    """

    name = "multilabel"
    problem_type = "multi_label_classification"
    activation = "sigmoid"
    metrics: ClassVar[Mapping[str, str]] = {
        "f1_micro": "a micro-averaged F1",
        "f1_macro": "a macro-averaged F1",
        "average_precision": "an average precision",
    }
    # Columns have the same values; those of a list must differ.
    settings = Annotated[dict[str, list[str]], Field(min_length=2), AfterValidator(check_names)]
    one_of = False
    has_threshold = True
    calls = asked = LABELS
    prompt = 'Answer in JSON, {"labels": […]}, with all of these labels that apply, or none: {labels}.'
    describes = "says which of these labels apply to {reads}: {names}"
    answer_is = "a probability for each label; those above 0.5 apply"
    detail_notes = "both are means over labels"
    agrees = "The two give the same labels to {share} % of {split}."
    note = (
        "F1: of decisions at a probability of 0.5, which rows with `threshold: dev` have moved to where each label's "
        "F1 is best on dev, and a teacher has not; average precision needs no decision. Agreement: in all labels of a "
        "row."
    )

    def check(self, task: Any) -> None:
        """Check the labels, and their columns."""
        lists = [columns for columns in task.label_columns if isinstance(columns, list)]
        if len(lists) < len(task.label_columns):
            check_classes(task.labels)
        for columns in lists:
            if len(columns) != len(task.labels):
                raise ValueError(
                    f"`label` names {len(columns)} columns, and `labels` {len(task.labels)} labels: "
                    "give one column for each, in their order"
                )
            if len(set(columns)) < len(columns):
                raise ValueError("`label` names a column twice; give one for each label")
        check_filled(task)
        no = [value for values in task.labels.values() for value in values if value in NO]
        if no and lists:
            raise ValueError(f"`labels`: {no[0]!r} in a label's column says that a row lacks it")

    def meaning(self, task: Any) -> LabelMarks:
        """Return the values of each label."""
        return LabelMarks(self.label_names(task), [[*map(composed, values)] for values in task.labels.values()])

    def label_type(self, labels: int) -> "pa.DataType":
        """Return the type of lists of marks."""
        import pyarrow as pa

        return pa.list_(pa.uint8(), labels)

    def holds(self, type_: "pa.DataType") -> bool:
        """Whether a column holds lists, all of one size."""
        import pyarrow as pa

        return pa.types.is_fixed_size_list(type_)

    def array(self, column: "pa.ChunkedArray") -> np.ndarray:
        """Return a 0 or 1 for each label, uint8 (rows, labels)."""
        marks = [chunk.flatten().to_numpy() for chunk in column.chunks]
        return np.concatenate([np.empty(0, np.uint8), *marks]).reshape(len(column), column.type.list_size)

    def decide(self, outputs: np.ndarray) -> np.ndarray:
        """Return a 0 or 1 for each label, uint8: those above a probability of 0.5 apply."""
        return (outputs > 0).astype(np.uint8)

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """Return every label's probability."""
        return sigmoid(outputs)

    def entropy_bits(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the sum over labels, as if they were independent: at most a bit for each."""
        return entropy_bits(np.concatenate([probabilities, 1.0 - probabilities], axis=1))

    def confidence(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probability that every label's answer is right.

        They are multiplied, as if they were independent.
        """
        shares = sigmoid(outputs)
        return np.maximum(shares, 1.0 - shares).prod(axis=1)

    def loss(self, outputs: "torch.Tensor", labels: "torch.Tensor") -> "torch.Tensor":
        """Return each label's binary cross-entropy, summed over labels."""
        return _binary_cross_entropy(outputs, labels.to(outputs.dtype))

    def soft_loss(self, outputs: "torch.Tensor", teacher: "torch.Tensor", temperature: float) -> "torch.Tensor":
        """Return the same against probabilities: each label has two classes, "no" and "yes"."""
        targets = (teacher / temperature).sigmoid()
        return _binary_cross_entropy(outputs / temperature, targets) * temperature**2

    def shifts(self, labels: np.ndarray, outputs: np.ndarray, metric: str, positive: int) -> np.ndarray:
        """Return what maximises each label's F1; one that no row has keeps a probability of 0.5."""
        pairs = zip(outputs.T.astype(np.float64), labels.T.astype(np.int64), strict=True)
        return np.array([best_threshold(*pair, "f1") if pair[1].any() else 0.0 for pair in pairs])

    def score(self, metric: str, labels: np.ndarray, outputs: np.ndarray, positive: int = 1) -> float:
        """Return a metric: see :func:`from_labels`."""
        return float(from_labels(metric, labels, outputs[None], np.ones((1, len(labels))))[0, 0])

    def compared(self, outputs: np.ndarray) -> np.ndarray:
        """Return the logits: an average precision needs no decisions."""
        return outputs

    def resampled(
        self, metric: str, labels: np.ndarray, answers: np.ndarray, classes: int, positive: int, chosen: np.ndarray
    ) -> np.ndarray:
        """Return a metric of every seed on samples of the rows."""
        return from_labels(metric, labels, answers, row_counts(chosen, len(labels)))

    def agreement(self, labels: np.ndarray, outputs: np.ndarray) -> float:
        """Return the share of rows that agree in every label (subset accuracy)."""
        return float((self.decide(outputs) == labels).all(axis=1).mean())

    def same_answers(self, reference: np.ndarray, outputs: np.ndarray) -> float:
        """Return the share of equal decisions: each is an answer."""
        return float((self.decide(reference) == self.decide(outputs)).mean())

    def check_answers(self, origin: Any, labels: np.ndarray, outputs: np.ndarray, names: Sequence[str]) -> None:
        """Check that decisions are no worse than each label's more frequent one, and in the order of the labels."""
        decided, marks = self.decide(outputs).astype(bool), labels.astype(bool)
        matches = (marks[:, :, None] == decided[:, None, :]).mean(0) / len(names)
        shares = marks.mean(0)
        check_order(origin, matches, float(np.maximum(shares, 1 - shares).mean()), len(labels), names)

    def detail_samples(self, labels: np.ndarray, outputs: np.ndarray) -> dict[str, ScoreSamples]:
        """Return the means over labels, each of which is a task of two classes."""
        each = [
            Classes().detail_samples(labels[:, number].astype(np.int64), of_two(outputs[..., number]))
            for number in range(labels.shape[1])
        ]

        def mean(name: str, chosen: np.ndarray) -> np.ndarray:
            return np.mean([scores[name](chosen) for scores in each], axis=0)

        return {name: partial(mean, name) for name in each[0]}

    def recall(self, labels: np.ndarray, outputs: np.ndarray) -> dict[int, float]:
        """Return the recall of each label; those without a row are left out."""
        positives = labels.sum(axis=0, dtype=np.int64)
        correct = (self.decide(outputs) * labels).sum(axis=0, dtype=np.int64)
        return {int(n): float(correct[n] / positives[n]) for n in np.flatnonzero(positives)}

    def floor(self, names: Sequence[str], labels: np.ndarray) -> tuple[str, np.ndarray]:
        """Return the labels that most training rows have."""
        usual = labels.mean(axis=0) > 0.5
        named = [name for name, is_usual in zip(names, usual, strict=True) if is_usual]
        return ", ".join(named) or "no label", np.where(usual, 1.0, -1.0)

    def bins(self, labels: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean confidence and accuracy by bin of all labels' answers, pooled."""
        return reliability(labels.reshape(-1).astype(np.int64), of_two(outputs.reshape(-1)))

    def wrong(self, labels: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, str]:
        """Return the rows that differ in some label."""
        return np.flatnonzero((self.decide(outputs) != labels).any(axis=1)), "with other labels"

    def predicted(self, outputs: np.ndarray, names: Sequence[str]) -> tuple[list[list[str]], np.ndarray]:
        """Return the labels that apply to each text, and all probabilities."""
        # In float32, as the program beside an exported student computes them.
        shares = np.float32(0.5) * np.tanh(np.float32(0.5) * outputs) + np.float32(0.5)
        return [self._applying(logits, names) for logits in outputs], shares

    def _applying(self, logits: np.ndarray, names: Sequence[str]) -> list[str]:
        return [name for name, value in zip(names, logits, strict=True) if value > 0]

    def missing(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the record of a row without an answer."""
        return {LABELS: None}

    def record(self, outputs: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
        """Return the labels that apply to a row, and all probabilities."""
        return {LABELS: self._applying(outputs, names)} | numbers_of(outputs, sigmoid(outputs), names)

    def columns(self, outputs: np.ndarray, names: Sequence[str]) -> dict[str, list[Any]]:
        """Return the labels that apply, a list for each row, and all probabilities."""
        return {LABELS: [self._applying(logits, names) for logits in outputs]} | share_columns(sigmoid(outputs), names)

    def fields(self, record: Mapping[str, Any], names: Sequence[str]) -> list[str]:
        """Return the labels that apply, each followed by its probability."""
        if record[LABELS] is None:
            return [""]
        shares = record["probabilities"]
        return [", ".join(f"{printable(name)} {shares[name]:.4f}" for name in record[LABELS]) or "(none)"]


def _binary_cross_entropy(outputs: "torch.Tensor", targets: "torch.Tensor") -> "torch.Tensor":
    import torch.nn.functional as F  # noqa: N812

    losses = F.binary_cross_entropy_with_logits(outputs, targets, reduction="none")
    return losses.sum(-1).mean()


def from_labels(metric: str, labels: np.ndarray, outputs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return a score of several labels on every sample of rows, float64 (samples, seeds).

    ``f1_micro`` pools the decisions about all labels; ``f1_macro`` is the mean of the labels' F1;
    ``average_precision`` is the mean of their average precision, Σ (Rₙ - Rₙ₋₁) Pₙ over the
    thresholds, which needs no decisions.  A label without a positive row counts as 0.

    :param labels: 0 or 1, (rows, labels); :param outputs: logits, (seeds, rows, labels).
    :param counts: how often each row is in each sample, float (samples, rows).
    """
    if metric == "average_precision":
        return np.stack([average_precision(labels, logits, counts) for logits in outputs], axis=1)
    decided = outputs > 0
    actual = (counts @ labels)[:, None]
    predicted, hits = (np.stack([counts @ marks for marks in each], axis=1) for each in (decided, decided * labels))
    if metric == "f1_micro":
        return ratio(2 * hits.sum(-1), (actual + predicted).sum(-1))
    if metric == "f1_macro":
        return ratio(2 * hits, actual + predicted).mean(-1)
    raise PotstillError(f"metric {metric!r}: take one of {', '.join(LabelSets.metrics)}.")
