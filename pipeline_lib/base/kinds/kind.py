"""What every kind of task says about itself: see :class:`TaskKind`."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import BaseModel

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.probabilities import entropy_bits, softmax
from pipeline_lib.base.text import printable

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

NO_VALUE = frozenset({"", "-", "nan", "null", "n/a", "na", "<na>", "#n/a"})
"""What people and their tools write for a missing label, in lower case."""
MINUS_ONE = frozenset({"-1", "-1.0"})
"""What GLUE and SNLI write for it, where classes are 0, 1, 2, …"""
DEVIATIONS = 4.0
"""Standard errors allowed for chance: one in 30,000 sound shards falls further below."""
TOLERANCE = 0.03
"""A further shortfall allowed in a shard's agreement: its rows can be harder."""
LABEL, LABELS, PROBABILITY = "label", "labels", "probability"
DIGITS, SHOWN = 6, 5
Raw = str | tuple[str, ...]
"""A row's label as it is in the file: one cell, or one for each of several labels."""
Label = int | float | tuple[int, ...]
"""A row's label: a class number or a score; of several labels a 0 or 1 for each."""
ScoreSamples = Callable[[np.ndarray], np.ndarray]
"""Maps the row numbers of samples, (samples, rows), to each seed's scores, (samples, seeds)."""


class Range(BaseModel, extra="forbid", frozen=True, strict=True, allow_inf_nan=False):
    """A closed interval of a numeric label column."""

    min: float
    max: float


class Meaning(ABC):
    """What the raw labels of a file mean; as a text, what is known.

    :ivar names: the labels of which each must occur in the training set.
    :ivar ranges: (min, max, class); a number outside of all of them is left out.
    """

    names: Sequence[str]
    ranges: Sequence[tuple[float, float, int]]

    @abstractmethod
    def classify(self, raw: Raw) -> Label | None:
        """Return the label that a raw value means, or None if it means none."""

    @abstractmethod
    def hides(self, raw: Raw) -> bool:
        """Return whether a raw value without a meaning marks a missing label."""

    def cells(self, raw: Raw) -> list[str]:
        """Return the cells that are not understood."""
        return [raw]


class TaskKind(ABC):
    """A kind of task: what its labels and a model's outputs are, and all that follows from it.

    In arrays, ``labels`` are (rows,), of several labels (rows, labels); ``outputs`` are a model's logits or scores,
    float (rows, outputs); ``answers`` are :meth:`decide` of outputs.  A kind from outside is registered with
    :func:`~pipeline_lib.params.register_kind`.

    :cvar name: in params.yaml; :cvar problem_type: what transformers calls the like of it.
    :cvar activation: what makes probabilities of outputs, as an exported model's metadata say it.
    :cvar metrics: each with its name in a sentence; no two kinds share one.
    :cvar settings: the type of ``labels`` in params.yaml, as pydantic checks it.
    :cvar has_probabilities: whether outputs are logits, so that an answer has a confidence.
    :cvar one_of: whether exactly one of the labels applies to each row.
    :cvar has_positive: whether ``positive`` of params.yaml names a label.
    :cvar has_threshold: whether a method's ``threshold`` can be chosen on dev.
    :cvar calls, answer_is, details_are, detail_notes, agrees, note: what tables and pages say of it.
    :cvar asked, prompt: the key of an answer that a language model is asked for, and how.
    """

    name: ClassVar[str]
    problem_type: ClassVar[str]
    activation: ClassVar[str] = "softmax"
    metrics: ClassVar[Mapping[str, str]]
    settings: ClassVar[Any]
    has_probabilities: ClassVar[bool] = True
    one_of: ClassVar[bool] = True
    has_positive: ClassVar[bool] = False
    has_threshold: ClassVar[bool] = False
    calls: ClassVar[str] = "classes"
    describes: ClassVar[str] = "classifies {reads} as {names}"
    answer_is: ClassVar[str] = "probabilities"
    details_are: ClassVar[str] = "calibration"
    detail_notes: ClassVar[str] = "top: accuracy on the most confident rows"
    agrees: ClassVar[str] = "The two agree on {share} % of {split}."
    note: ClassVar[str | None] = None
    asked: ClassVar[str] = LABEL
    prompt: ClassVar[str] = 'Answer in JSON, {"label": …}, with one of these labels: {labels}.'

    @property
    def has_several(self) -> bool:
        """Whether any number of the labels can apply to a row."""
        return self.has_probabilities and not self.one_of

    # What params.yaml says.

    def check(self, task: Any) -> None:
        """Check what a task of this kind says besides the types of its values; ValueError for the first fault."""
        check_column(task)

    def label_names(self, task: Any) -> list[str]:
        """Return the names of a model's outputs."""
        return [*task.labels]

    def positive_class(self, task: Any) -> int:
        """Return the number of the class whose F1 is reported if there are two; else it means nothing."""
        return 1

    def f1_label(self, task: Any) -> str | None:
        """Return the name of that class; None where no F1 of one class is reported."""
        return None

    # Labels of a file and of shards.

    @abstractmethod
    def meaning(self, task: Any) -> Meaning:
        """Return what the raw labels of a task mean."""

    @abstractmethod
    def label_type(self, labels: int) -> "pa.DataType":
        """Return the Arrow type of labels, by which the kind is recognised: no two kinds share one."""

    def holds(self, type_: "pa.DataType") -> bool:
        """Whether a column of this type holds labels of this kind."""
        return type_ == self.label_type(1)

    def array(self, column: "pa.ChunkedArray") -> np.ndarray:
        """Return a column of labels without nulls."""
        return column.to_numpy().astype(np.int64)

    # Outputs.

    @abstractmethod
    def decide(self, outputs: np.ndarray) -> np.ndarray:
        """Return the answers, in the form of labels."""

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """Return probabilities, float64 (rows, outputs): of one class each row, or of every label."""
        return softmax(outputs)

    def entropy_bits(self, probabilities: np.ndarray) -> np.ndarray:
        """Return each row's entropy in bits, (rows,): 0 is certain, log2(classes) a toss-up."""
        return entropy_bits(probabilities)

    def confidence(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probability of each row's answer, float64 (rows,)."""
        return self.probabilities(outputs).max(axis=1)

    # Learning.

    @abstractmethod
    def loss(self, outputs: "torch.Tensor", labels: "torch.Tensor") -> "torch.Tensor":
        """Return the loss of labels, averaged over rows: a scalar."""

    def soft_loss(self, outputs: "torch.Tensor", teacher: "torch.Tensor", temperature: float) -> "torch.Tensor":
        """Return the cross-entropy against the teacher's softened probabilities (Hinton et al. 2015).

        Multiplied by T², so that gradients keep their size when T changes.
        """
        import torch.nn.functional as F  # noqa: N812

        targets = (teacher / temperature).softmax(-1)
        return F.cross_entropy(outputs / temperature, targets) * temperature**2

    def shifts(self, labels: np.ndarray, outputs: np.ndarray, metric: str, positive: int) -> np.ndarray:
        """Return what a threshold chosen on dev subtracts from each output, float64 (outputs,)."""
        raise PotstillError(f"a threshold is not for `kind: {self.name}`. Set null.")

    # Scores.

    @abstractmethod
    def score(self, metric: str, labels: np.ndarray, outputs: np.ndarray, positive: int = 1) -> float:
        """Return a metric; ``positive`` is the class whose F1 is computed if there are two."""

    def compared(self, outputs: np.ndarray) -> np.ndarray:
        """Return what :meth:`resampled` needs of a seed's outputs: its answers."""
        return self.decide(outputs)

    @abstractmethod
    def resampled(
        self, metric: str, labels: np.ndarray, answers: np.ndarray, classes: int, positive: int, chosen: np.ndarray
    ) -> np.ndarray:
        """Return a metric of every seed on samples of the rows, float64 (samples, seeds).

        :param answers: :meth:`compared` of each seed, (seeds, rows, ...); :param classes: the number of outputs.
        :param chosen: the rows of each sample, int (samples, rows).
        """

    @abstractmethod
    def agreement(self, labels: np.ndarray, outputs: np.ndarray) -> float:
        """Return how well outputs agree with labels, or with another model's answers."""

    def same_answers(self, reference: np.ndarray, outputs: np.ndarray) -> float:
        """Return the share of a model's answers that another one's outputs share."""
        return self.agreement(self.decide(reference), outputs)

    @abstractmethod
    def detail_samples(self, labels: np.ndarray, outputs: np.ndarray) -> dict[str, ScoreSamples]:
        """Return the scores besides the metrics by which systems are compared, on samples of rows."""

    def details(self, labels: np.ndarray, outputs: np.ndarray) -> dict[str, float]:
        """Return the scores besides the metrics."""
        everything = np.arange(len(labels))[None]
        samples = self.detail_samples(labels, outputs[None])
        return {name: float(scores(everything)[0, 0]) for name, scores in samples.items()}

    def recall(self, labels: np.ndarray, outputs: np.ndarray) -> dict[int, float]:
        """Return the recall of each class, or label; those without a row are left out."""
        return {}

    @abstractmethod
    def floor(self, names: Sequence[str], labels: np.ndarray) -> tuple[str | float, np.ndarray]:
        """Return the constant answer that fits training labels best, and outputs (outputs,) that give it."""

    @abstractmethod
    def bins(self, labels: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return predictions and the truth, means by bin of equal mass, for a diagram of reliability."""

    def cells(
        self, labels: np.ndarray, outputs: Mapping[str, Sequence[np.ndarray]], names: list[str]
    ) -> tuple[list[str], np.ndarray, dict[str, list[np.ndarray]]]:
        """Return names, and which of them label and answers are, int (rows,), for a confusion matrix."""
        return names, labels, {system: [*map(self.decide, seeds)] for system, seeds in outputs.items()}

    # Health of a teacher's outputs.

    def varies(self, labels: np.ndarray) -> bool:
        """Whether an agreement with these labels says anything."""
        return True

    def least_agreement(self, teacher_agreement: float, rows: int) -> float:
        """Return the lowest agreement that chance explains in a shard with ``rows`` labelled rows: binomial."""
        # A teacher that is never wrong on its training rows may still be wrong on one in ``rows``.
        error = max(teacher_agreement * (1.0 - teacher_agreement), 1.0 / rows)
        return teacher_agreement - DEVIATIONS * math.sqrt(error / rows) - TOLERANCE

    def chance_agreement(self, labels: np.ndarray, outputs: np.ndarray) -> float:
        """Return the highest agreement that answers unrelated to their rows reach by chance.

        It is the expected agreement of shuffled answers, plus the deviations.
        """
        rows = len(labels)
        # Each set of labels is a class of its own.
        both = np.concatenate([labels, self.decide(outputs)])
        classes, numbers = np.unique(both, axis=0, return_inverse=True)
        actual, predicted = (np.bincount(half, minlength=len(classes)) / rows for half in np.split(numbers, 2))
        expected = float(actual @ predicted)
        return expected + DEVIATIONS * math.sqrt(expected * (1.0 - expected) / rows)

    def wrong(self, labels: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, str]:
        """Return the rows whose answers are no labels, and how they differ, in words."""
        return np.flatnonzero(self.decide(outputs) != labels), "with another class"

    @abstractmethod
    def check_answers(self, origin: Any, labels: np.ndarray, outputs: np.ndarray, names: Sequence[str]) -> None:
        """Check that a finished teacher's outputs on labelled rows are no worse than a constant, and mean these labels.

        :param names: the labels', in the order of the outputs.
        """

    # Answers to texts, for people and files.

    def predicted(self, outputs: np.ndarray, names: Sequence[str]) -> tuple[Any, np.ndarray | None]:
        """Return the labels and the probabilities, float32, as Python programs get them."""
        labels = [names[number] for number in self.decide(outputs)]
        return labels, self.probabilities(outputs).astype(np.float32)

    def missing(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the record of a row without an answer."""
        return {LABEL: None}

    def record(self, outputs: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
        """Return the answer to one row, outputs (outputs,), as a JSON object."""
        shares = self.probabilities(outputs[None])[0]
        best = int(self.decide(outputs[None])[0])
        return {LABEL: names[best], PROBABILITY: rounded(shares[best])} | numbers_of(outputs, shares, names)

    def columns(self, outputs: np.ndarray, names: Sequence[str]) -> dict[str, list[Any]]:
        """Return the answers to rows that have one, as columns of a table."""
        shares, best = self.probabilities(outputs), self.decide(outputs)
        columns = {
            LABEL: [names[number] for number in best],
            PROBABILITY: [rounded(share[number]) for share, number in zip(shares, best, strict=True)],
        }
        return columns | share_columns(shares, names)

    def fields(self, record: Mapping[str, Any], names: Sequence[str]) -> list[str]:
        """Return the answer of a record as the fields of a line for people."""
        share = record.get(PROBABILITY)
        return [printable(record[LABEL] or ""), "" if share is None else f"{share:.4f}"]


def check_column(task: Any) -> None:
    """Check that one column has the labels; ValueError."""
    if any(isinstance(columns, list) for columns in task.label_columns):
        raise ValueError(f"`label` names several columns, and with `kind: {task.kind}` there is one. Name it")


def rounded(value: float) -> float:
    """Return a number as it is written in files."""
    return round(float(value), DIGITS)


def numbers_of(logits: np.ndarray, shares: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
    """Return what a record says besides its answer: all probabilities, and the logits."""
    return {
        "probabilities": {name: rounded(share) for name, share in zip(names, shares, strict=True)},
        "logits": [*map(rounded, logits)],
    }


def share_columns(shares: np.ndarray, names: Sequence[str]) -> dict[str, list[float]]:
    """Return a column of probabilities for each name."""
    return {f"{PROBABILITY}_{name}": [*map(rounded, shares[:, n])] for n, name in enumerate(names)}


def finite_number(value: str) -> float | None:
    """Return a value as a finite number, or None."""
    try:
        parsed = float(value)
    except ValueError:
        return None
    return parsed if math.isfinite(parsed) else None


def check_labels(labels: np.ndarray | None, predictions: np.ndarray) -> np.ndarray:
    """Return ``labels`` if all are known and there is one per answer."""
    hidden = labels is None or (labels.dtype.kind == "i" and (labels < 0).any())
    if hidden:
        raise PotstillError("hidden labels cannot be scored. Score the dev split, or give the test file's labels.")
    if len(labels) != len(predictions) or not len(labels):
        raise PotstillError(f"{len(predictions)} predictions for {len(labels)} labels to score.")
    return np.asarray(labels)


def check_order(origin: Any, matches: np.ndarray, constant: float, rows: int, names: Sequence[str]) -> None:
    """Check that answers agree with labels as well as the best constant, and not much better in another order.

    :param matches: the share of the rows that have label i and answer j, (labels, labels); its diagonal agrees.
    :param constant: the agreement of the best constant answer.
    """
    from scipy.optimize import linear_sum_assignment

    agreement, (_, order) = float(np.trace(matches)), linear_sum_assignment(matches, maximize=True)
    best, chance = float(matches[np.arange(len(names)), order].sum()), DEVIATIONS / 2 * rows**-0.5
    message = f"{origin}: the teacher's answers agree with the labels on {agreement:.1%} of {rows:,} rows"
    if best - agreement > chance and best > constant:
        meant = [(names[answer], names[label]) for label, answer in enumerate(order) if label != answer]
        listed = ", ".join(f"{answer} for {label}" for answer, label in meant[:SHOWN])
        order = "Correct the order of its classes (a model's `id2label` in config.json, a file's `classes`)."
        raise PotstillError(f"{message}, and on {best:.1%} if it says {listed}. {order}")
    if constant - agreement > chance:
        raise PotstillError(f"{message}, and one constant answer does on {constant:.1%}. Give a teacher of this task.")


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide; 0/0 (a class that is neither given nor predicted) counts as 0, as in scikit-learn."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=np.asarray(denominator) > 0)


def mean_of(values: np.ndarray) -> ScoreSamples:
    """Return the mean of each seed's values (seeds, rows), as a score of samples of rows."""
    rows = values.shape[1]
    return lambda chosen: row_counts(chosen, rows) @ values.T / rows


def row_counts(chosen: np.ndarray, rows: int) -> np.ndarray:
    """Return how often each row is in each sample of row numbers, float64 (samples, rows)."""
    return np.stack([np.bincount(one, minlength=rows) for one in chosen]).astype(np.float64)


def average_precision(labels: np.ndarray, outputs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return one seed's mean over labels of the average precision on every sample, (samples,)."""
    each = []
    for marks, values in zip(labels.T, outputs.T, strict=True):
        order = np.argsort(-values, kind="stable")
        # Rows of equal outputs cannot be separated: they share a threshold.
        ends = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))
        rows = counts[:, order]
        hits = np.cumsum(rows * marks[order], axis=1)[:, ends]
        precision = ratio(hits, np.cumsum(rows, axis=1)[:, ends])
        gained = np.diff(hits, axis=1, prepend=0.0)
        each.append(ratio((gained * precision).sum(axis=1), hits[:, -1]))
    return np.mean(each, axis=0)
