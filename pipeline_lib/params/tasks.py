"""Tasks of params.yaml: what their labels mean, and how they are split."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationInfo, field_validator, model_validator

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.kind import Range
from pipeline_lib.params.base import Fraction, Positive, Section, Times
from pipeline_lib.params.task_sources import HubDataset, Source, Split

UNLABELLED = "unlabelled"


class SplitParams(Section):
    """How one file is split: fractions of its rows, stratified by label."""

    dev: Annotated[float, Field(gt=0.0, lt=1.0)]
    test: Fraction


class AugmentParams(Section):
    """Synthetic sentences per example, and the cap on the transfer set's rows, which can be left out."""

    n_iter: Annotated[int, Field(ge=0, le=10_000)]
    cap: Positive | None = None


LabelColumn = str | list[str] | dict[Split, str | list[str]] | None
"""The column of the labels, the same for all splits or one for each; null: nothing is labelled."""


def _known(kind: str) -> str:
    if kind not in KINDS:
        names = [repr(name) for name in KINDS]
        raise ValueError(f"Input should be {', '.join(names[:-1])} or {names[-1]}")
    return kind


class Task(Section):
    """One labelled task: where its text comes from and what its labels mean.

    ``text`` names one column, or two for a task about sentence pairs; ``label`` names one, or one for each split
    that has labels; null: nothing is labelled.  If the training set has no labels, students can only learn a
    teacher's answers.  What ``labels``, ``metrics`` and ``positive`` may be, and whether ``label`` may list several
    columns, its ``kind`` says: see :class:`~pipeline_lib.base.kinds.kind.TaskKind`.  The first of ``metrics`` selects
    on dev and is tested for significance.  ``train_fraction`` is the share of the training set that is used; smaller
    shares are subsets of larger ones.
    """

    source: Source
    text: Annotated[list[str], Field(min_length=1, max_length=2)]
    label: LabelColumn
    kind: Annotated[str, AfterValidator(_known)]
    labels: Any
    metrics: Annotated[list[str], Field(min_length=1)]
    positive: str | None
    split: SplitParams | None
    train_fraction: Annotated[float, Field(gt=0.0, le=1.0)]
    blocks: Times
    augment: AugmentParams

    @field_validator("labels", mode="before")
    @classmethod
    def _of_kind(cls, labels: Any, info: ValidationInfo) -> Any:
        kind = KINDS.get(info.data.get("kind", ""))
        return labels if kind is None else TypeAdapter(kind.settings).validate_python(labels, strict=True)

    @field_validator("metrics")
    @classmethod
    def _metrics(cls, metrics: list[str], info: ValidationInfo) -> list[str]:
        kind = KINDS.get(info.data.get("kind", ""))
        return metrics if kind is None else TypeAdapter(list[Literal[*kind.metrics]]).validate_python(metrics)

    @field_validator("positive")
    @classmethod
    def _positive(cls, positive: str | None, info: ValidationInfo) -> str | None:
        kind = KINDS.get(info.data.get("kind", ""))
        if kind is not None and positive is not None and not kind.has_positive:
            raise ValueError(f"it goes with the metric f1 of two classes. Set null for `kind: {kind.name}`")
        return positive

    @model_validator(mode="after")
    def _checked_by_kind(self) -> "Task":
        KINDS[self.kind].check(self)
        return self

    @model_validator(mode="after")
    def _pooled(self) -> "Task":
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
            raise ValueError("`label`: `unlabelled` has none; remove it")
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
        source = self.source
        return list(source.splits if isinstance(source, HubDataset) else source.files)

    def label_of(self, split: str) -> str | list[str] | None:
        """Return the label column of one split, or the columns of several labels; None: it has no labels."""
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
        return UNLABELLED in self._split_names

    @property
    def learns_from_labels(self) -> bool:
        """Whether its training set has labels."""
        return self.label_of("train") is not None

    @property
    def label_columns(self) -> list[str | list[str]]:
        """What ``label`` names: for all splits, or for each."""
        return [*self.label.values()] if isinstance(self.label, dict) else [] if self.label is None else [self.label]

    @property
    def label_names(self) -> list[str]:
        """The names of a model's outputs: classes by their number, labels, or a score."""
        return KINDS[self.kind].label_names(self)

    @property
    def positive_class(self) -> int:
        """The number of the class whose F1 is reported if there are two; else it means nothing."""
        return KINDS[self.kind].positive_class(self)

    @property
    def score_range(self) -> Range | None:
        """The range of the scores, or None where labels are no scores."""
        return self.labels if isinstance(self.labels, Range) else None
