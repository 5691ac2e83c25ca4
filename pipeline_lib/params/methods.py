"""Methods of params.yaml: optimisers, objectives, the rows that combine it all, evaluation."""

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline_lib.params.base import Count, Fraction, Positive, Probability, Section, Seed
from pipeline_lib.params.models import TrainingPrecision


class Optimiser(Section):
    """An optimiser and how long it runs; whichever of ``epochs`` and ``max_steps`` ends first.

    Each of ``learning_rates`` is tried with the first seed, and the one that is best on dev is
    taken for all.  ``evaluate_every`` counts the steps between evaluations (null: an epoch's).
    """

    name: Literal["adam", "adadelta"]
    learning_rates: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
    schedule: Literal["constant", "linear"]
    warmup: Fraction
    batch_size: Positive
    epochs: Positive
    max_steps: Positive | None
    evaluate_every: Positive | None
    clip_norm: Annotated[float, Field(gt=0)] | None
    precision: TrainingPrecision

    def steps(self, rows: int) -> int:
        """Return how many steps one training takes over so many rows."""
        steps = self.epochs * math.ceil(rows / self.batch_size)
        return min(steps, self.max_steps or steps)


class Objective(Section):
    """Weights of the losses; a null weight or absent loss plays no part (METHODS section 6)."""

    logits: Probability | None = None
    soft_labels: Probability | None = None
    labels: Probability | None = None
    temperature: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Objective":
        weights = [w for w in (self.logits, self.soft_labels, self.labels) if w]
        if not weights or abs(sum(weights) - 1.0) > 1e-9:
            raise ValueError("the weights of logits, soft_labels and labels must add up to 1")
        if bool(self.soft_labels) != (self.temperature is not None):
            raise ValueError("`temperature` goes with `soft_labels`: give both or neither")
        return self

    @property
    def needs_teacher(self) -> bool:
        """Whether a teacher's logits are read."""
        return bool(self.logits or self.soft_labels)


class Method(Section):
    """One system: student, start, transfer set, objective, optimiser (METHODS section 8).

    ``start`` is ``vectors`` (the vocabulary's), ``random``, or the name of an encoder.
    ``tasks`` names those that have the row (null: all that have its transfer set).
    ``iterations`` takes the transfer set's first ones alone (0: the originals); null takes all.

    Three keys can be left out, and then play no part.  ``repeat_originals`` takes every original
    row so many times, ``min_confidence`` leaves out synthetic rows to whose class the teacher gives
    a lower probability, and ``threshold: dev`` moves the decision between two classes to where the
    first metric is best on dev.
    """

    student: str
    start: str
    data: str
    iterations: Count | None
    objective: Objective
    optimiser: str
    baseline: str | None
    tasks: Annotated[list[str], Field(min_length=1)] | None
    repeat_originals: Positive | None = None
    min_confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    threshold: Literal["dev"] | None = None


class Evaluate(Section):
    """The comparison with the undistilled row: resamples of the evaluation set, the interval."""

    resamples: Annotated[int, Field(ge=100)]
    confidence: Annotated[float, Field(gt=0, lt=1)]
    seed: Seed


class Speed(Section):
    """The timing of teacher and students: how many sentences, how many repeats."""

    sentences: Positive
    repeats: Positive
