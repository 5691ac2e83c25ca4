"""Tasks whose labels are numbers: a regression."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.calibration import BINS
from pipeline_lib.base.kinds.kind import (
    DEVIATIONS,
    MINUS_ONE,
    NO_VALUE,
    TOLERANCE,
    Meaning,
    Range,
    ScoreSamples,
    TaskKind,
    check_labels,
    finite_number,
    mean_of,
    ratio,
    rounded,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

MIN_ERROR_OF_ANOTHER_UNIT = 2.0
"""In standard deviations of the labels on dev."""
RANGES = 6
"""Labels and answers are compared in this many ranges of equal width."""


@dataclass(frozen=True)
class ScoreRange(Meaning):
    """The scores of a regression, from ``low`` to ``high``; a value outside is an error."""

    names: ClassVar[Sequence[str]] = ()
    ranges: ClassVar[Sequence[tuple[float, float, int]]] = ()
    low: float
    high: float

    def classify(self, raw: str) -> float | None:
        """Return the score, or None if it is not a number in the range."""
        value = finite_number(raw)
        return value if value is not None and self.low <= value <= self.high else None

    def hides(self, raw: str) -> bool:
        """Return whether a raw value outside of the range marks a missing score."""
        return raw.casefold() in NO_VALUE or (raw in MINUS_ONE and self.low > -1)

    def __str__(self) -> str:
        return f"numbers from {self.low:g} to {self.high:g}"


class Scores(TaskKind):
    """Numbers from ``labels.min`` to ``labels.max``; the one output is the score itself."""

    name = "regression"
    problem_type = "regression"
    activation = "none"
    metrics: ClassVar[Mapping[str, str]] = {"pearson": "a Pearson correlation", "spearman": "a Spearman correlation"}
    settings = Range
    has_probabilities = one_of = False
    describes = "scores {reads} ({names})"
    answer_is = "the score itself, not a probability"
    asked = "score"
    prompt = 'Answer in JSON, {"score": …}, with a number from {min} to {max}.'
    details_are = "mean error"
    detail_notes = (
        "Mean error: mean absolute error in the labels' unit; gain over the baseline as above, below zero is better."
    )
    agrees = "The scores of the two on {split} have a correlation of {share} %."

    def check(self, task: Any) -> None:
        """Check the range."""
        super().check(task)
        if task.labels.min >= task.labels.max:
            raise ValueError("`labels`: min must be below max")

    def label_names(self, task: Any) -> list[str]:
        """Return the name of the one output: the label column's."""
        return [next(iter(task.label_columns), "") or "score"]

    def meaning(self, task: Any) -> ScoreRange:
        """Return the range of scores."""
        return ScoreRange(task.labels.min, task.labels.max)

    def label_type(self, labels: int) -> "pa.DataType":
        """Return the type of scores."""
        import pyarrow as pa

        return pa.float32()

    def holds(self, type_: "pa.DataType") -> bool:
        """Whether a column holds floating-point numbers."""
        import pyarrow as pa

        return pa.types.is_floating(type_)

    def array(self, column: "pa.ChunkedArray") -> np.ndarray:
        """Return scores, float32."""
        return column.to_numpy().astype(np.float32)

    def decide(self, outputs: np.ndarray) -> np.ndarray:
        """Return the scores, float64."""
        return outputs[:, 0].astype(np.float64)

    def loss(self, outputs: "torch.Tensor", labels: "torch.Tensor") -> "torch.Tensor":
        """Return the mean squared error."""
        import torch.nn.functional as F  # noqa: N812

        return F.mse_loss(outputs.squeeze(-1), labels)

    def score(self, metric: str, labels: np.ndarray, outputs: np.ndarray, positive: int = 1) -> float:
        """Return a correlation; that with a constant is 0."""
        import scipy.stats

        answers = self.decide(outputs)
        if np.ptp(labels) == 0 or np.ptp(answers) == 0:
            return 0.0
        function = scipy.stats.pearsonr if metric == "pearson" else scipy.stats.spearmanr
        return float(function(labels.astype(np.float64), answers).statistic)

    def resampled(
        self, metric: str, labels: np.ndarray, answers: np.ndarray, classes: int, positive: int, chosen: np.ndarray
    ) -> np.ndarray:
        """Return a correlation of every seed on samples of the rows."""
        return np.stack([from_scores(metric, labels[rows], answers[:, rows]) for rows in chosen])

    def agreement(self, labels: np.ndarray, outputs: np.ndarray) -> float:
        """Return Pearson's r."""
        return self.score("pearson", check_labels(labels, outputs), outputs)

    def detail_samples(self, labels: np.ndarray, outputs: np.ndarray) -> dict[str, ScoreSamples]:
        """Return the mean absolute error, in the labels' unit."""
        return {"mean_absolute_error": mean_of(np.abs(outputs[..., 0] - labels))}

    def floor(self, names: Sequence[str], labels: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean score, with which nothing correlates."""
        mean = float(labels.mean())
        return mean, np.array([mean])

    def bins(self, labels: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean answers, by which the rows are sorted, and mean labels by bin."""
        order = np.argsort(outputs[:, 0], kind="stable")
        bins = [rows for rows in np.array_split(order, BINS) if len(rows)]
        predicted = np.array([outputs[rows, 0].mean() for rows in bins])
        return predicted, np.array([labels[rows].mean() for rows in bins])

    def cells(
        self, labels: np.ndarray, outputs: Mapping[str, Sequence[np.ndarray]], names: list[str]
    ) -> tuple[list[str], np.ndarray, dict[str, list[np.ndarray]]]:
        """Return ranges of equal width; answers outside the labels' range are in the outermost ones."""
        edges = np.linspace(labels.min(), labels.max(), RANGES + 1)
        predicted = {s: [np.digitize(one[:, 0], edges[1:-1]) for one in seeds] for s, seeds in outputs.items()}
        return [f"{a:.3g} to {b:.3g}" for a, b in pairwise(edges)], np.digitize(labels, edges[1:-1]), predicted

    def varies(self, labels: np.ndarray) -> bool:
        """Whether the labels differ: there is no correlation with a constant."""
        return bool(np.ptp(labels))

    def least_agreement(self, teacher_agreement: float, rows: int) -> float:
        """Return the lowest correlation that chance explains: Fisher's z."""
        z = math.atanh(min(teacher_agreement, 1.0 - 1e-9))
        return math.tanh(z - DEVIATIONS / math.sqrt(rows - 3)) - TOLERANCE

    def chance_agreement(self, labels: np.ndarray, outputs: np.ndarray) -> float:
        """Return the highest correlation of unrelated scores: 0, plus the deviations."""
        return DEVIATIONS / math.sqrt(max(len(labels) - 1, 1))

    def wrong(self, labels: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, str]:
        """Return all rows, by their error."""
        return np.argsort(-np.abs(outputs[:, 0] - labels)), "furthest from their labels first"

    def check_answers(self, origin: Any, labels: np.ndarray, outputs: np.ndarray, names: Sequence[str]) -> None:
        """Check that scores are in the unit of the labels, both shape (rows,).

        Correlations would not reveal it, but students are trained on both.  A constant prediction has
        an error of the labels' standard deviation; and scores that follow the labels vary as they do.
        """
        scores = outputs[:, 0]
        spread, deviation = float(labels.std()), float(scores.std())
        error = float(np.sqrt(np.mean((scores - labels) ** 2)))
        explained = self.agreement(labels, outputs) * spread
        if error <= MIN_ERROR_OF_ANOTHER_UNIT * spread and 3 * deviation >= explained:
            return
        raise PotstillError(
            f"{origin}: the teacher's scores (mean {scores.mean():.3g}, standard deviation "
            f"{deviation:.3g}) are in another unit than the labels (mean {labels.mean():.3g}, standard "
            f"deviation {spread:.3g}): their error is {error:.3g}. Rescale the task's label column to "
            "the teacher's unit, or have a teacher fine-tuned here (`kind: single`)."
        )

    def predicted(self, outputs: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, None]:
        """Return the scores."""
        return outputs[:, 0], None

    def missing(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the record of a row without a score."""
        return {names[0]: None}

    def record(self, outputs: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
        """Return the score by its name."""
        return {names[0]: rounded(outputs[0])}

    def columns(self, outputs: np.ndarray, names: Sequence[str]) -> dict[str, list[Any]]:
        """Return the scores by their name."""
        return {names[0]: [*map(rounded, outputs[:, 0])]}

    def fields(self, record: Mapping[str, Any], names: Sequence[str]) -> list[str]:
        """Return the score."""
        score = record[names[0]]
        return ["" if score is None else f"{score:.4f}"]


def from_scores(metric: str, labels: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return the correlation of every row of ``answers`` with the labels, float64."""
    if metric == "spearman":
        import scipy.stats

        labels = scipy.stats.rankdata(labels)
        answers = scipy.stats.rankdata(answers, axis=-1)
    x = labels - labels.mean()
    y = answers - answers.mean(-1, keepdims=True)
    return ratio((x * y).sum(-1), np.sqrt((x * x).sum() * (y * y).sum(-1)))
