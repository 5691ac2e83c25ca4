"""The schemas of ``scores.json``: a task's scores, and those of a row of ``retrieval`` and of ``similarity``.

Scores are by split and metric.  A split whose labels are hidden has null instead of scores, and one that the task does
not have has no key.  Numbers are rounded to six decimals, so that the file is reproducible to the byte.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field

from pipeline_lib.base.kinds import KINDS, TaskKind, kind_of
from pipeline_lib.base.promises import Stretch
from pipeline_lib.base.record_files import Record, RecordFile

# + 0.0: a rounded -0.0 would be printed with its sign.
Rounded = Annotated[float, AfterValidator(lambda value: round(value, 6) + 0.0)]
Scores = dict[str, Rounded]
Changed = Literal["start", "answers", "sentences", "decision", "optimiser"]
"""What two rows differ in: where they start; whose answers they learn, with which objective; which
sentences; threshold or temperature; and, if all these are the same, the optimiser."""
Source = Literal["gold", "teacher", "both"]
"""Whose answers a student learned from: the labels, a teacher's, or both."""


class SeedScores(Record):
    """One metric of a method's students: mean and sample standard deviation, and by seed."""

    mean: Rounded
    std: Rounded
    by_seed: dict[str, Rounded]

    @classmethod
    def of(cls, by_seed: dict[str, float]) -> Self:
        """Summarise the scores of a method's seeds."""
        values = list(by_seed.values())
        # The sample standard deviation; one seed says nothing about the spread.
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(mean=float(np.mean(values)), std=spread, by_seed=by_seed)

    @classmethod
    def by_name(cls, scores: Mapping[str, Mapping[str, float]]) -> "dict[str, Self]":
        """Summarise several scores, by seed and name; all seeds have the first one's."""
        names = next(iter(scores.values()))
        return {n: cls.of({seed: each[n] for seed, each in scores.items()}) for n in names}


class Gain(Record):
    """A method's mean score minus its baseline's, with interval and p; these are None for one seed.

    :ivar p_holm: p corrected for the number of the table's comparisons.
    """

    difference: Rounded
    low: Rounded | None
    high: Rounded | None
    p: Rounded | None
    p_holm: Rounded | None


class ParameterCounts(Record):
    """How many parameters a model has, without and with its embedding tables."""

    without_embeddings: int
    with_embeddings: int

    def ratio_to(self, other: "ParameterCounts") -> "Ratio":
        """Return how many times larger these counts are."""
        return Ratio(
            without_embeddings=self.without_embeddings / max(other.without_embeddings, 1),
            with_embeddings=self.with_embeddings / max(other.with_embeddings, 1),
        )


class Ratio(Record):
    """How many times fewer parameters a student has, without and with embedding tables."""

    without_embeddings: Rounded
    with_embeddings: Rounded


class Floor(Record):
    """The scores of a constant answer: the training set's most frequent class, or mean score.

    :ivar answer: None, without scores, if the training set has no labels.
    """

    answer: str | Rounded | None
    scores: dict[str, Scores | None]


class TeacherDetails(Record):
    """A teacher's scores besides the metrics, by split.

    :ivar recall: by label, except those without a row; empty for a regression.
    """

    scores: dict[str, dict[str, Rounded] | None]
    recall: dict[str, dict[str, Rounded] | None]


class TeacherScores(Record):
    """A teacher's scores, and the precision in which its logits were computed, by split.

    :ivar parameters: None if the answers are not from a model run here.
    :ivar unanswered: rows without an answer, if there are any: only the others are scored.
    :ivar faults: why its answers do not fit the labels, if it was used all the same.
    """

    scores: dict[str, Scores | None]
    details: TeacherDetails
    precision: dict[str, str]
    parameters: ParameterCounts | None
    unanswered: dict[str, int] = Field(default_factory=dict)
    faults: list[str] = Field(default_factory=list)


class MethodDetails(Record):
    """A method's scores besides the metrics, by split.

    :ivar temperature: what each seed's logits are divided by here and in use, chosen on dev; None
        if the row does not ask for it.
    :ivar recall: by label, except those without a row; empty for a regression.
    :ivar gain: over the baseline, in nll and ece, or in the mean absolute error: below zero is
        better; None if there is no baseline, or the labels are hidden.
    """

    temperature: dict[str, Rounded] | None
    scores: dict[str, dict[str, SeedScores] | None]
    recall: dict[str, dict[str, SeedScores] | None]
    gain: dict[str, dict[str, Gain] | None]


class RoutingPoint(Record):
    """A student that answers confident rows, and routes the rest to its teacher.

    :ivar share: of dev that the teacher answers; :ivar thresholds: by seed, the confidence at
        or below which a row is routed to the teacher; not rounded, since rows can be tied.
    :ivar routed: the share of rows that were routed, mean over seeds, by split.
    :ivar accuracy: of the two together, by split; None if the labels are hidden.
    :ivar cost: parameters used per row, without embeddings, relative to the teacher's.
    """

    share: Rounded
    thresholds: dict[str, float]
    routed: dict[str, Rounded]
    accuracy: dict[str, SeedScores | None]
    cost: dict[str, Rounded]


class Routing(Record):
    """A student backed by its teacher, at increasing shares of rows routed to the teacher.

    :ivar teacher_accuracy: by split; hidden ones are left out.
    :ivar best: what the student may answer alone so that the share ``figure`` of its answers is the teacher's; see
        :mod:`pipeline_lib.base.promises`.  :ivar stretches: by seed, what that follows from.
    :ivar agreement: the share that it is, of all seeds, by split; None if nothing is answered alone.
    """

    teacher_accuracy: dict[str, Rounded]
    figure: float
    stretches: dict[str, list[Stretch]]
    agreement: dict[str, Rounded | None]
    best: RoutingPoint
    curve: list[RoutingPoint]


class Training(Record):
    """How one method was trained.

    :ivar best_dev_by_rate: of the first seed, by learning rate; :ivar best_step: by seed, the step
        whose weights were kept.
    :ivar dev_loss_by_rate: of the first seed, if the lowest loss chose rate and step; else None.
    """

    learning_rate: float
    best_dev_by_rate: dict[str, float]
    dev_loss_by_rate: dict[str, float] | None = None
    rows: int
    steps: int
    batch_size: int
    best_step: dict[str, int]


FEW_DEV_ROWS = 200
"""With fewer labelled rows, dev chose students that were two points worse than the best; see ``follows_teacher``."""


class MethodScores(Record):
    """One method against the labels, its teacher and its baseline, by split.

    :ivar teacher: the row's own, or else the task's first.
    :ivar agreement: with the teacher: share of equal answers (of several labels, in all of them), or correlation for
        a regression; over the rows that the teacher answered, and None if there are none.
    :ivar correlation: Pearson's, of its probabilities with the teacher's, of all classes and the same rows.
    :ivar gain: over the baseline; None if there is none, or the labels are hidden.
    :ivar routing: together with the teacher; None for a regression and for several labels.
    :ivar yardstick: whether it is a regression on the labels, fitted in seconds.
    """

    student: str
    data: str
    learned_from: Source
    teacher: str
    baseline: str | None
    training: Training
    scores: dict[str, dict[str, SeedScores] | None]
    agreement: dict[str, Rounded | None]
    against_teacher: dict[str, Rounded | None]
    gain: dict[str, Gain | None]
    details: MethodDetails
    routing: Routing | None
    parameters: ParameterCounts
    ratio: Ratio | None
    yardstick: bool = False
    correlation: dict[str, Rounded | None] = Field(default_factory=dict)


class Step(Record):
    """A row's gain over one that differs in a single thing; see ``evaluation/ablation_steps.py``.

    :ivar changed: that thing; :ivar gain: by split, corrected for the number of steps.
    """

    method: str
    previous: str
    changed: Changed
    gain: dict[str, Gain | None]


class TaskScores(RecordFile):
    """The scores of one task; see the module for its rules.

    :ivar metrics: the task's; gains and distances are in the first.
    :ivar f1_label: the class that F1 refers to, if there are two classes.
    :ivar shared_texts: by split and earlier split, how many rows share a text with that one
        (``rows``), and how many of these have another label there (``other_label``).
    """

    metrics: list[str]
    f1_label: str | None
    labels: list[str]
    rows: dict[str, int]
    selection: str
    floor: Floor
    teachers: dict[str, TeacherScores]
    methods: dict[str, MethodScores]
    steps: list[Step]
    shared_texts: dict[str, dict[str, dict[str, int]]]

    @property
    def metric(self) -> str:
        """The first metric, used for selection and gains."""
        return self.metrics[0]

    @property
    def kind(self) -> str:
        """What the task's labels are."""
        return kind_of(self.metric)

    @property
    def of_kind(self) -> TaskKind:
        """What that means."""
        return KINDS[self.kind]

    @property
    def scored_splits(self) -> list[str]:
        """The splits whose labels are known."""
        return [split for split, scores in self.floor.scores.items() if scores is not None]

    @property
    def decisive_split(self) -> str:
        """The split for reporting gain and distance: test, or dev if test is not labelled."""
        return "test" if "test" in self.scored_splits else "dev"

    @property
    def further_splits(self) -> list[str]:
        """The labelled splits besides dev and test, such as MNLI's mismatched ones."""
        return [split for split in self.scored_splits if split not in ("dev", "test")]

    @property
    def follows_teacher(self) -> bool:
        """Whether dev has too few rows to choose a student by its labels, and the teacher does not fail on them.

        It is measured for one class per row (benchmarks/few_rows.md).
        """
        rows, scores = self.rows["dev"], [method.scores["dev"] for method in self.methods.values()]
        taught = [teacher.scores["dev"] for teacher in self.teachers.values()]
        if not self.of_kind.one_of or rows >= FEW_DEV_ROWS or None in scores or None in taught:
            return False
        best = max(scored[self.metric].mean for scored in scores)
        # Two standard errors of a share at the most.
        fails = min(scored[self.metric] for scored in taught) < best - rows**-0.5
        return not fails and all(method.correlation.get("dev") is not None for method in self.methods.values())

    def best_on_dev(self, methods: Iterable[str] | None = None) -> str | None:
        """Return the method with the best mean score on dev; of equals, the smallest student's.

        Agreement with the teacher takes the place of the score where nothing is labelled, and the correlation of their
        probabilities where :attr:`follows_teacher`.

        :returns: None if there are none.
        """
        follows = bool(self.methods) and self.follows_teacher

        def merit(name: str) -> tuple[float, int]:
            method = self.methods[name]
            scored = method.scores["dev"]
            value = scored[self.metric].mean if scored else method.agreement["dev"]
            value = method.correlation["dev"] if follows else value
            # A student that diverged has no correlation.
            is_number = value is not None and np.isfinite(value)
            return value if is_number else -np.inf, -method.parameters.with_embeddings

        return max(self.methods if methods is None else methods, key=merit, default=None)


class Rankings(Record):
    """One system's ranking quality, by the measures of ``retrieval/evaluation/measures.py``.

    :ivar judged: against the judgements; :ivar teacher: against the teacher's order, if there is a
        teacher.  By seed if a system has seeds.
    """

    judged: dict[str, SeedScores]
    teacher: dict[str, SeedScores] | None


class RetrievalScores(RecordFile):
    """The scores of one row of ``retrieval``.

    :ivar queries: the number used, which have an answer; :ivar left_out: the number not used.
    :ivar relevant: answers to all queries; :ivar at: the cutoffs k of the measures.
    :ivar teacher: whose order systems are compared with; :ivar teacher_pairs: the mean number of pairs it read.
    """

    queries: int
    left_out: int
    documents: int
    relevant: int
    at: list[int]
    teacher: str | None
    teacher_pairs: Rounded | None
    systems: dict[str, Rankings]

    @property
    def measures(self) -> list[str]:
        """The measures in the order in which they are shown."""
        recalls, gains = ([f"{name}@{k}" for k in self.at] for name in ("recall", "ndcg"))
        return [*recalls, f"mrr@{max(self.at)}", *gains]


class SimilarityScores(RecordFile):
    """The scores of one row of ``similarity``: each system's by metric, on ``split``.

    :ivar rows: of train, on which thresholds are chosen, and of the split.
    """

    task: str
    metrics: list[str]
    split: str
    rows: dict[str, int]
    systems: dict[str, Scores]
