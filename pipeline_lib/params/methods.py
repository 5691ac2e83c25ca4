"""Methods and joint trainings of params.yaml: optimisers, objectives, the rows that combine them."""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from pipeline_lib.params.base import Count, Fraction, Positive, Ref, Section, Select, TaskNames
from pipeline_lib.params.models import Optimised


class Optimiser(Optimised):
    """An optimiser and how long it runs: ``epochs`` or ``max_steps``, whichever ends first.

    Each of ``learning_rates`` is tried with the first seed, and the best on dev is used for all.  Left out,
    ``warmup``, ``max_steps`` and ``clip_norm`` are not used, and dev is evaluated after each epoch, not after
    ``evaluate_every`` steps.
    """

    name: Literal["adam", "adadelta"]
    schedule: Literal["constant", "linear"]
    warmup: Fraction = 0.0
    max_steps: Positive | None = None
    evaluate_every: Positive | None = None
    clip_norm: Annotated[float, Field(gt=0)] | None = None

    def steps(self, rows: int) -> int:
        """Return how many steps one training run over this many rows takes."""
        steps = self.epochs * math.ceil(rows / self.batch_size)
        return min(steps, self.max_steps or steps)


class Fitting(Section):
    """The L-BFGS of a regression (Liu and Nocedal 1989), until it converges.

    Each of ``penalties``, the factors of half the weights' squares, is tried; the loss of the labels decides,
    cross-validated on train, or on dev where there are synthetic rows or pairs.
    """

    precision: ClassVar[str] = "float32"
    select: ClassVar[Select] = "loss"

    name: Literal["lbfgs"]
    penalties: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]

    @property
    def learning_rates(self) -> list[float]:
        """What is searched: the penalties."""
        return self.penalties

    def steps(self, rows: int) -> int:
        """Return 1: it reads all rows at once."""
        return 1


AnyOptimiser = Annotated[Optimiser | Fitting, Field(discriminator="name")]
OBJECTIVES = {
    "logits": "logits",
    "soft_labels": "logits",
    "labels": "labels",
    "patience": "states",
    "embeddings": "teacher_embeddings",
    "hidden": "teacher_hidden",
    "attentions": "teacher_attentions",
}
"""The terms that an objective can have, and the column of targets that each is compared with."""
RUNNING = ("embeddings", "hidden", "attentions")
"""Terms whose targets are too large to store: the teacher runs beside the student for them."""
BESIDE = ["patience", *RUNNING]
"""Terms that are added to the others, with weights of any size."""


PARAMETERS: dict[str, tuple[str, ...]] = {}
"""The parameters of registered terms."""


def register_objective(name: str, target: str, beside: bool = False, parameters: Sequence[str] = ()) -> None:
    """Register another term of objectives.

    :param target: the column that it is compared with: ``labels``, or a teacher's output.
    :param beside: whether it is added to the others, see :data:`BESIDE`.
    :param parameters: those that a row may give it.
    """
    OBJECTIVES[name], PARAMETERS[name] = target, tuple(parameters)
    if beside and name not in BESIDE:
        BESIDE.append(name)


class Objective(Section):
    """Weights of the terms of a loss, by their names in :data:`OBJECTIVES`; they add up to 1.

    A null weight is the same as an absent term.  The weights of :data:`BESIDE`, like β in Sun et
    al. 2019, equation 8, are not part of that sum and may exceed 1.  The terms of :data:`RUNNING`
    can also be used alone: then layers are learned and no answers (Jiao et al. 2020, section 3.2).
    ``parameters`` are those of registered terms, by the term's name.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[float, Field(ge=0)] | None]

    temperature: Annotated[float, Field(gt=0)] | None = None
    parameters: Annotated[dict[str, dict[str, float]], Field(default_factory=dict)]

    @model_validator(mode="after")
    def _consistent(self) -> "Objective":
        accepted = {f"{name}.{key}" for name in self.weights for key in PARAMETERS.get(name, ())}
        named = {f"{name}.{key}" for name, values in self.parameters.items() for key in values}
        if unknown := sorted(named - accepted):
            raise ValueError(f"`parameters`: no {unknown[0]}; there are {', '.join(sorted(accepted)) or 'none'}")
        for name in self.__pydantic_extra__:
            if name not in OBJECTIVES:
                raise ValueError(f"no term {name!r}; there are {', '.join(OBJECTIVES)}")
        summed = [name for name in OBJECTIVES if name not in BESIDE]
        total = sum(self.weights.get(name, 0.0) for name in summed)
        if abs(total - 1.0) > 1e-9 and not self.is_of_layers:
            raise ValueError(f"the weights of {', '.join(summed)} must add up to 1")
        if ("soft_labels" in self.weights) != (self.temperature is not None):
            raise ValueError("`temperature` goes with `soft_labels`: give both or neither")
        return self

    @property
    def weights(self) -> dict[str, float]:
        """The weights that are not zero, by term."""
        weights = self.__pydantic_extra__
        # In the order of OBJECTIVES, whatever that of the file: sums of floats depend on it.
        return {name: weights[name] for name in OBJECTIVES if weights.get(name)}

    @property
    def is_of_layers(self) -> bool:
        """Whether only layers are learned, and no answers."""
        return bool(self.weights) and all(name in RUNNING for name in self.weights)

    @property
    def needs_teacher(self) -> bool:
        """Whether a teacher's outputs are read."""
        return any(OBJECTIVES[name] != "labels" for name in self.weights)

    @property
    def needs_states(self) -> bool:
        """Whether the states of a teacher's layers are read."""
        return any(OBJECTIVES[name] == "states" for name in self.weights)

    @property
    def needs_running_teacher(self) -> bool:
        """Whether the teacher runs beside the student in training."""
        return any(name in RUNNING for name in self.weights)


class TeacherRuns(Section):
    """The teacher runs beside the student in training (Jiao et al. 2020, TinyBERT).

    For a method it is the row's teacher; for a row of ``encoders``, the student's ``model``.
    ``layers``, counted from 1, lists one of its layers for each of the student's.
    """

    layers: Annotated[list[Positive], Field(min_length=1)]


class Taught(Section):
    """A student, how long it is trained, and by whom.

    ``teacher`` can be left out: a row that reads outputs must name it if one of its tasks has more than one.
    """

    student: Annotated[str, Ref("students")]
    optimiser: Annotated[str | None, Ref("optimisers")]
    teacher: Annotated[str | None, Ref("teachers")] = None


JOINT_OBJECTIVE = {"logits": 1.0}
"""What a joint training learns (Liu 2020, section 4.1.3): the teachers' logits, by squared error."""


class Joint(Taught):
    """A student shared by several tasks, trained on all of them (Liu 2020, algorithm 1).

    ``tasks`` names the group's tasks, each with the transfer set that it contributes.
    """

    optimiser: Annotated[str, Ref("optimisers")]
    start: Literal["vectors", "random", "model"]
    tasks: Annotated[dict[str, str], Field(min_length=1), Ref("tasks")]


class Method(Taught):
    """One system: student, start, transfer set, objective, optimiser.

    ``start`` is ``vectors`` (the vocabulary's, or for word pieces those of the student's model), ``random``,
    ``model`` (layers of the student's model), or the name of an encoder; of a joint training, whose student for the
    task is then tuned, or used as it is (``optimiser: null``); or of another row, whose students are then trained
    further, seed by seed (Jiao et al. 2020, section 3.2: first layers, then answers).

    These keys can be left out.  ``tasks`` restricts the row to some of the tasks that have its transfer set, its
    teacher and its start.  ``iterations`` limits the transfer set's iterations that are used (0: only the originals).
    ``baseline`` is the row that it is tested against.  ``teacher_runs`` goes with the terms :data:`RUNNING`.
    ``threshold: dev`` moves the decision between two classes to where the first metric is best on dev, in every export.
    ``temperature: dev`` divides the trained student's logits by the value that makes its probabilities fit dev's
    labels best, which changes no answer.
    """

    start: Annotated[str, Ref("starts")]
    data: Annotated[str, Ref("transfer")]
    iterations: Count | None = None
    objective: Objective
    baseline: Annotated[str | None, Ref("methods")] = None
    tasks: TaskNames = None
    teacher_runs: TeacherRuns | None = None
    threshold: Literal["dev"] | None = None
    temperature: Literal["dev"] | None = None
