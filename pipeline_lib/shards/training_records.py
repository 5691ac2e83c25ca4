"""The schemas of ``training.json`` and ``search.json``; keys that do not apply are left out, and others ignored."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field

from pipeline_lib.base.files import write_json
from pipeline_lib.base.record_files import Record, RecordFile
from pipeline_lib.params import Fitting, Optimiser, Select, Tuning


class ModelRecord(RecordFile):
    """What the record of any model, or of a teacher without a model, may say.

    :ivar computed_on: the processor and torch's version; None: nothing was computed here.
    :ivar max_length: a teacher's, in pieces; :ivar best_dev_loss: of dev's labels, or cross-validated: if it chose.
    :ivar faults: why a teacher's answers do not fit dev's labels, if it is used all the same.
    """

    others: ClassVar[Literal["forbid", "ignore"]] = "ignore"
    computed_on: str | None = None
    max_length: int | None = None
    best_dev_loss: float | None = None
    faults: list[str] = Field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write it as JSON, without the keys that were not set."""
        write_json(path, self.model_dump(exclude_unset=True))


TUNED = {"name": "adam", "schedule": "linear", "max_steps": None, "evaluate_every": None}
TUNED |= {"warmup": 0.1, "weight_decay": 0.01, "clip_norm": 1.0}
"""How every teacher is tuned (Devlin et al. 2019, appendix A.2; the gradients' norm as in their code)."""
FITTED = {"schedule": "constant", "warmup": 0.0, "batch_size": 1, "epochs": 1, "max_steps": 1, "evaluate_every": None}
FITTED |= {"clip_norm": None, "weight_decay": 0.0}
"""How a linear model is fitted: in one step over all rows."""

SEED = 1
"""That of encoders, which are trained once; students are trained with each of ``seeds``."""


@dataclass(frozen=True)
class Settings:
    """How a model is optimised; ``max_steps`` caps the steps whatever ``epochs`` says."""

    optimiser: str
    learning_rate: float
    schedule: str
    warmup: float
    batch_size: int
    epochs: int
    max_steps: int | None
    evaluate_every: int | None
    clip_norm: float | None
    weight_decay: float
    precision: str
    seed: int
    select: Select = "metric"

    @classmethod
    def of(cls, optimiser: Optimiser | Fitting | Tuning, rate: float, precision: str, seed: int) -> "Settings":
        """Return the settings of a run at one of an optimiser's, or a tuning's, learning rates, or of a penalty."""
        values = {"weight_decay": 0.0} | (FITTED if isinstance(optimiser, Fitting) else {})
        values |= (TUNED if isinstance(optimiser, Tuning) else {}) | optimiser.model_dump()
        values |= {"optimiser": values["name"], "learning_rate": rate, "select": optimiser.select}
        values |= {"precision": precision, "seed": seed}
        return cls(**{field.name: values[field.name] for field in fields(cls)})


class Evaluation(Record):
    """An evaluation on dev: the mean training loss since the last one, and the score.

    :ivar dev_loss: of dev's labels, if evaluations were chosen by it; of several tasks, the mean weighted by rows.
    """

    step: int
    epoch: float
    loss: float
    dev: float
    dev_loss: float | None = None
    dev_by_task: list[float] | dict[str, float] | None = None
    dev_loss_by_task: list[float] | dict[str, float] | None = None

    def of_task(self, key: int | str) -> "Evaluation":
        """Return one task's evaluation, by its number or name, as if it were trained alone."""
        losses = self.dev_loss_by_task
        loss = {} if losses is None else {"dev_loss": losses[key]}
        shared = {"step": self.step, "epoch": self.epoch, "loss": self.loss}
        return Evaluation(**shared, dev=self.dev_by_task[key], **loss)

    def named(self, tasks: Iterable[str]) -> "Evaluation":
        """Return the evaluation with the names of its tasks, given in their order."""
        keys = ("dev_by_task", "dev_loss_by_task")
        values = {key: value for key in keys if (value := getattr(self, key)) is not None}
        names = [*tasks]
        return self.model_copy(update={key: dict(zip(names, value, strict=True)) for key, value in values.items()})


class TrainingRecord(ModelRecord):
    """What the record of every training run says.

    :ivar best_step: the step whose weights were kept; :ivar selection: how it was chosen.
    """

    best_dev: float
    best_step: int
    steps: int
    selection: str
    settings: Settings
    history: list[Evaluation]
    computed_on: str

    @property
    def merit(self) -> float:
        """What the trainings of a search are compared by, higher is better; NaN is the worst."""
        merit = self.best_dev if self.best_dev_loss is None else -self.best_dev_loss
        return -math.inf if math.isnan(merit) else merit


OfTask = TypeVar("OfTask", bound=TrainingRecord)


class TasksRecord(TrainingRecord):
    """A run of several tasks, as it is kept: without their names.

    :ivar by_task: what a task's record has besides, in the order of the tasks.
    """

    by_task: list[dict[str, Any]]
    rows: int | None = None

    @property
    def shared(self) -> dict[str, Any]:
        """What the records of all tasks have in common."""
        return {name: getattr(self, name) for name in self.model_fields_set - {"by_task"}}

    def of_task(self, number: int, kind: type[OfTask], **extra: Any) -> OfTask:
        """Return one task's record, as if it were trained alone, with its own score as ``dev``, and further fields."""
        history = [evaluation.of_task(number) for evaluation in self.history]
        [best] = [evaluation for evaluation in history if evaluation.step == self.best_step]
        scores = {"history": history, "best_dev": best.dev}
        scores |= {} if best.dev_loss is None else {"best_dev_loss": best.dev_loss}
        return kind(**self.shared | scores | self.by_task[number] | extra)


class StudentRecord(TrainingRecord):
    """A student.

    :ivar rows: of the training set; :ivar unanswered: those left out for lack of an answer.
    :ivar threshold_shift: what was subtracted from each class's or label's logit.
    :ivar label_scale: mean and deviation of a regression's labels; :ivar rows_of_task: of ``rows``, of several tasks.
    """

    rows: int
    unanswered: int = 0
    threshold_shift: float | list[float] = 0.0
    label_scale: dict[str, float] | None = None
    rows_of_task: int | None = None


class JointRecord(TrainingRecord):
    """A row of ``joint``: its students' scores and rows by the names of their tasks."""

    rows: int
    rows_by_task: dict[str, int]
    best_dev_by_task: dict[str, float]

    @classmethod
    def of(cls, record: TasksRecord, students: dict[str, StudentRecord]) -> "JointRecord":
        """Return a run's record with the names of its tasks, in their order."""
        history = [evaluation.named(students) for evaluation in record.history]
        rows = {task: student.rows_of_task for task, student in students.items()}
        best = {task: student.best_dev for task, student in students.items()}
        by_task = {"rows_by_task": rows, "best_dev_by_task": best}
        return cls(**record.shared | {"history": history} | by_task)


class TeacherRecord(ModelRecord):
    """A teacher whose model is run, fine-tuned here or elsewhere.

    :ivar metric: that of ``best_dev``; :ivar training_agreement: with its training labels.  None: there are no labels.
    :ivar parameters: their counts, by whether embedding tables are included.
    """

    metric: str
    best_dev: float | None
    selection: str
    training_agreement: float | None
    parameters: dict[str, int]
    computed_on: str
    max_length: int


class TunedTeacherRecord(TrainingRecord, TeacherRecord):
    """A teacher that was tuned here; with several tasks at once, it has the last three fields.

    :ivar best_dev_mean: the mean over tasks, weighted by rows, of the evaluation that was chosen.
    """

    rows: int | None = None
    label_scale: dict[str, float] | None = None
    best_dev_mean: float | None = None


class LabelsRecord(ModelRecord):
    """A teacher without a model."""

    labels: list[str]


class AnswersRecord(LabelsRecord):
    """A teacher whose answers are in files.

    :ivar best_dev, training_agreement: over the labelled rows that have an answer; None: there are none.
    """

    metric: str
    best_dev: float | None
    dev_rows: int
    training_agreement: float | None
    training_rows: int
    selection: str
    provenance: dict[str, str]
    counts: dict[str, int]


class EncoderRecord(TrainingRecord):
    """An encoder, trained without a task; ``dev`` of its history is the loss."""

    sentences: int
    held_back_sentences: int
    loss: float


class Spread(Record):
    """How widely an encoder's vectors of held-back sentences are spread, and their targets."""

    effective_rank: float
    mean_cosine: float
    target_effective_rank: float
    target_mean_cosine: float


class VectorEncoderRecord(EncoderRecord, Spread):
    """An encoder that learned sentence vectors.

    :ivar constant_loss: that of one constant vector; :ivar centred: whether targets were.
    """

    words: int
    centred: bool
    constant_loss: float


class SearchRecord(RecordFile):
    """The search for a learning rate, with the first seed.

    :ivar dev_loss_by_rate: of dev's labels, if its lowest value chose the rate; else None.
    """

    seed: int
    learning_rate: float
    best_dev_by_rate: dict[str, float]
    dev_loss_by_rate: dict[str, float] | None = None


def tuned_length(folder: Path) -> int | None:
    """Return the word-piece limit of a teacher's fine-tuning; None if its folder doesn't say."""
    record = folder / "training.json"
    return ModelRecord.read(record).max_length if record.exists() else None
