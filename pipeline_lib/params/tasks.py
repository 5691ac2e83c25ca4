"""Tasks of params.yaml: what their labels mean, and how they are split."""

import unicodedata
from itertools import pairwise
from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator, model_validator

from pipeline_lib.base.probabilities import Kind
from pipeline_lib.params.base import Fraction, Positive, Section, Times
from pipeline_lib.params.task_sources import HubDataset, Source, Split
from pipeline_lib.params.texts import Pool

UNLABELLED, POOL = "unlabelled", "pool"
_CONTROLS = {"Cc", "Zl", "Zp"}
"""Unicode's categories of control characters and line separators."""
Decision = Literal["accuracy", "f1", "matthews_correlation"]
Correlation = Literal["pearson", "spearman"]
LabelScore = Literal["f1_micro", "f1_macro", "average_precision"]
Metric = Decision | Correlation | LabelScore
DECISIONS, CORRELATIONS = get_args(Decision), get_args(Correlation)
LABEL_SCORES = get_args(LabelScore)
METRICS: dict[Kind, tuple[Metric, ...]] = {
    "classification": DECISIONS,
    "regression": CORRELATIONS,
    "multilabel": LABEL_SCORES,
}
"""The metrics of each kind of task; no two kinds share one."""


def kind_of(metric: Metric) -> Kind:
    """Return the kind of task that a metric is for."""
    return next(kind for kind, metrics in METRICS.items() if metric in metrics)


class Range(Section):
    """A closed interval of a numeric label column."""

    min: float
    max: float


def _check_classes(labels: dict[str, list[str] | Range]) -> None:
    """Check that classes can be told apart, and that no value belongs to two.

    :raises ValueError: for the first fault.
    """
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
    _check_ranges({name: one for name, one in labels.items() if isinstance(one, Range)})


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


class SplitParams(Section):
    """How one file is split: fractions of its rows, stratified by label."""

    dev: Annotated[float, Field(gt=0.0, lt=1.0)]
    test: Fraction


class AugmentParams(Section):
    """Synthetic sentences per example, and the cap on the transfer set's rows, which can be left out."""

    n_iter: Annotated[int, Field(ge=0, le=10_000)]
    cap: Positive | None = None


LabelColumn = str | dict[Split, str] | None
"""The column of the labels, the same for all splits or one for each; null: nothing is labelled."""


class TaskBase(Section):
    """One labelled task: where its text comes from and what its labels mean.

    ``text`` names one column, or two for a task about sentence pairs; ``label`` names one, or one for each split
    that has labels; null: nothing is labelled.  If the training set has no labels, students can only learn a
    teacher's answers.  The first of ``metrics`` selects on dev and is tested for significance.  ``train_fraction``
    is the share of the training set that is used; smaller shares are subsets of larger ones.  ``pool`` can be left
    out: further unlabelled texts.
    """

    source: Source
    text: Annotated[list[str], Field(min_length=1, max_length=2)]
    label: LabelColumn
    split: SplitParams | None
    train_fraction: Annotated[float, Field(gt=0.0, le=1.0)]
    blocks: Times
    augment: AugmentParams
    pool: Pool | None = None

    @model_validator(mode="after")
    def _pooled(self) -> "Task":
        if self.pool is not None and self.is_pair:
            raise ValueError("`pool` has single texts, and this task compares two. Take it out")
        return self

    @model_validator(mode="after")
    def _columns(self) -> "Task":
        if len(set(self.text)) < len(self.text):
            raise ValueError(f"`text` names the column {self.text[0]!r} twice; a pair has two")
        for label in dict.fromkeys(c for split in self._split_names for c in self.labels_of(split)):
            if label in self.text:
                raise ValueError(f"`label` and `text` name one column, {label!r}; correct one")
        return self

    @model_validator(mode="after")
    def _splits(self) -> "Task":
        names = self._split_names
        if isinstance(self.label, dict) and (self.split is not None or set(self.label) - set(names)):
            raise ValueError(
                "`label` by split may name only splits of the source, and not be combined with "
                "`split`; name one column for all, or null"
            )
        if self.split is None and not {"train", "dev"} <= set(names):
            raise ValueError("without `split`, the source must name both a train and a dev file")
        if "all" in names and (self.split is None or set(names) - {"all", UNLABELLED}):
            raise ValueError("an `all` file stands alone, or beside `unlabelled`; it needs `split`")
        if isinstance(self.label, dict) and UNLABELLED in self.label:
            raise ValueError("`label`: `unlabelled` has none; take it out")
        if "all" not in names and "train" not in names:
            raise ValueError("the source must name a `train` file, or one `all` file and a `split`")
        if self.split is not None and self.split.dev + self.split.test >= 1.0:
            raise ValueError("`split.dev` and `split.test` leave nothing to train on")
        if self.split is not None and ("dev" in names or (self.split.test and "test" in names)):
            raise ValueError("`split` draws what the source names already; take one of them out")
        return self

    @property
    def is_pair(self) -> bool:
        """Whether an example is two sentences."""
        return len(self.text) == 2

    @property
    def _split_names(self) -> list[str]:
        """The splits that the source names."""
        source = self.source
        return list(source.splits if isinstance(source, HubDataset) else source.files)

    def label_of(self, split: str) -> str | None:
        """Return the label column of one split; None: it has no labels."""
        if split == UNLABELLED:
            return None
        return self.label.get(split) if isinstance(self.label, dict) else self.label

    def labels_of(self, split: str) -> list[str]:
        """Return the label columns of one split: none, one, or for several labels one of each."""
        label = self.label_of(split)
        return [] if label is None else [label] if isinstance(label, str) else [*label]

    @property
    def has_unlabelled(self) -> bool:
        """Whether it has unlabelled texts beside its examples."""
        return UNLABELLED in self._split_names or self.pool is not None

    @property
    def learns_from_labels(self) -> bool:
        """Whether its training set has labels."""
        return self.label_of("train") is not None

    @property
    def is_regression(self) -> bool:
        """Whether labels are numbers rather than classes."""
        return isinstance(self, Regression)

    @property
    def positive_class(self) -> int:
        """The number of the class whose F1 is reported if there are two; else it means nothing."""
        return 1

    @property
    def f1_label(self) -> str | None:
        """The name of that class, or None where no F1 of one class is reported."""
        return None

    @property
    def score_range(self) -> Range | None:
        """The range of the scores, or None where labels are no scores."""
        return None


class Classification(TaskBase):
    """A task whose labels are classes.

    ``positive`` names the label whose F1 is reported; null: the second of two.
    """

    kind: Literal["classification"]
    labels: Annotated[dict[str, list[str] | Range], Field(min_length=2)]
    metrics: Annotated[list[Decision], Field(min_length=1)]
    positive: str | None

    @field_validator("labels")
    @classmethod
    def _labels(cls, labels: dict[str, list[str] | Range]) -> dict[str, list[str] | Range]:
        _check_classes(labels)
        return labels

    @model_validator(mode="after")
    def _values(self) -> "Classification":
        empty = [name for name, meaning in self.labels.items() if meaning == []]
        if empty and self.label is not None:
            raise ValueError(f"`labels`: {empty[0]} has no values. Name some, or leave it out.")
        return self

    @model_validator(mode="after")
    def _positive(self) -> "Classification":
        if self.positive is None:
            return self
        if self.positive not in self.labels:
            raise ValueError(f"`positive`: no label {self.positive!r}; there are {', '.join(self.labels)}")
        if "f1" not in self.metrics or len(self.labels) != 2:
            raise ValueError("`positive` goes with the metric f1 of two labels; else it is null")
        return self

    @property
    def label_names(self) -> list[str]:
        """Label names; the position is the class number."""
        return list(self.labels)

    @property
    def positive_class(self) -> int:
        """The number of the class whose F1 is reported if there are two."""
        return 1 if self.positive is None else self.label_names.index(self.positive)

    @property
    def f1_label(self) -> str | None:
        """The name of that class, or None where no F1 of one class is reported."""
        of_one = "f1" in self.metrics and len(self.labels) == 2
        return self.label_names[self.positive_class] if of_one else None


class Regression(TaskBase):
    """A task whose labels are numbers, from ``labels.min`` to ``labels.max``."""

    kind: Literal["regression"]
    labels: Range
    metrics: Annotated[list[Correlation], Field(min_length=1)]
    positive: None

    @model_validator(mode="after")
    def _not_empty(self) -> "Regression":
        if self.labels.min >= self.labels.max:
            raise ValueError("`labels`: min must be below max")
        return self

    @property
    def label_names(self) -> list[str]:
        """The name of the one output: the label column's."""
        named = list(self.label.values()) if isinstance(self.label, dict) else [self.label]
        return [named[0] if named and named[0] else "score"]

    @property
    def score_range(self) -> Range:
        """The range of the scores."""
        return self.labels


NO = ("0", "0.0", "false", "no")
"""What a column of a single label says where a row lacks it, in lower case."""


class Multilabel(TaskBase):
    """A task whose rows have any number of labels, or none.

    ``label`` lists a column per label, in the order of ``labels``, whose values say that a row has
    it; or names one column of lists, in which ``labels`` says which values mean which label.
    """

    kind: Literal["multilabel"]
    label: str | list[str] | dict[Split, str | list[str]] | None
    labels: Annotated[dict[str, list[str]], Field(min_length=2)]
    metrics: Annotated[list[LabelScore], Field(min_length=1)]
    positive: None

    @field_validator("labels")
    @classmethod
    def _names(cls, labels: dict[str, list[str]]) -> dict[str, list[str]]:
        # Columns have the same values; those of a list must differ.
        _check_classes({name: [] for name in labels})
        return labels

    @model_validator(mode="after")
    def _columns_of_labels(self) -> "Multilabel":
        columns = [label for label in map(self.label_of, self._split_names) if label is not None]
        if any(isinstance(label, str) for label in columns):
            _check_classes(self.labels)
        for label in columns:
            if isinstance(label, list) and len(label) != len(self.labels):
                raise ValueError(
                    f"`label` names {len(label)} columns, and `labels` {len(self.labels)} labels: "
                    "give one column for each, in their order"
                )
            if isinstance(label, list) and len(set(label)) < len(label):
                raise ValueError("`label` names a column twice; give one for each label")
        empty = [name for name, values in self.labels.items() if not values]
        if empty and columns:
            raise ValueError(f"`labels`: {empty[0]} has no values. Name some, or leave it out.")
        no = [value for values in self.labels.values() for value in values if value in NO]
        if no and any(isinstance(label, list) for label in columns):
            raise ValueError(f"`labels`: {no[0]!r} in a label's column says that a row lacks it")
        return self

    @property
    def label_names(self) -> list[str]:
        """Label names; the position is that of their output."""
        return list(self.labels)


Task = Annotated[Classification | Regression | Multilabel, Field(discriminator="kind")]
