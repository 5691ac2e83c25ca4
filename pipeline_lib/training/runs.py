"""Training runs of any kind: what determines one, running it, and storing its result by content.

Results are kept outside DVC's outputs.  So a new seed trains one student, old settings find theirs
again, and a stage that was killed resumes with the missing runs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch

from pipeline_lib.base.devices import resolve_training_precision
from pipeline_lib.base.files import sha256_json
from pipeline_lib.base.layout import check_state_folder
from pipeline_lib.base.processor import computed_on
from pipeline_lib.params import Fitting, Optimiser, StudentSettings, Tuning
from pipeline_lib.shards.engine.protocol import Engine
from pipeline_lib.shards.fingerprint import ARCHITECTURES, training_code
from pipeline_lib.shards.trained import Trained
from pipeline_lib.shards.training_records import Settings, TrainingRecord
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.loop import Batches, Evaluate, LossOf, Report, fit

Fields = dict[str, Any]
"""Fields of a record."""
Finish = Callable[[Path, Progress], Fields]
"""Saves a trained model into a folder, and returns what its record has besides :class:`TrainingRecord`'s fields."""


@dataclass
class Prepared:
    """A training run, ready to start.

    :ivar model: untrained, on its device.
    """

    model: torch.nn.Module
    batches: Batches
    loss: LossOf
    evaluate: Evaluate
    finish: Finish


class TrainingSpec(ABC):
    """Everything that determines one training run of any kind; its result is found by content.

    :cvar kind: students, encoders or teachers: names the folder of the results.
    :cvar record: the class of its record.
    :ivar optimiser: how the model is optimised; :ivar rate: at which of the learning rates.
    :ivar student: what is trained; None: a teacher.
    :ivar device: torch's name for it.
    """

    kind: ClassVar[str]
    record: ClassVar[type[TrainingRecord]]
    optimiser: Optimiser | Fitting | Tuning
    student: StudentSettings | None
    rate: float
    seed: int
    device: str

    @property
    def settings(self) -> Settings:
        """How the model is optimised, at this rate and on this device."""
        recurrent = self.student is not None and self.student.recurrent
        device = torch.device(self.device)
        precision = resolve_training_precision(self.optimiser.precision, device, recurrent)
        return Settings.of(self.optimiser, self.rate, precision, self.seed)

    @property
    def is_by_loss(self) -> bool:
        """Whether the lowest loss on dev is kept, instead of the best score."""
        return self.optimiser.select == "loss"

    @property
    @abstractmethod
    def made_from(self) -> Any:
        """What determines the result besides settings, device and code: data, model, start; no names, no folders."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """The approximate number of rows that one epoch reads."""

    @abstractmethod
    def prepare(self) -> Prepared:
        """Load data and model."""

    def run(self, report: Report) -> tuple[Progress, Finish]:
        """Train what :meth:`prepare` returns, from its checkpoint if there is one."""
        run = self.prepare()
        steps = run.model, run.batches, run.loss, run.evaluate, self.settings, self.result.checkpoint
        return fit(*steps, report), run.finish

    @property
    def planned_steps(self) -> int:
        """The approximate number of steps that the run takes."""
        settings = self.settings
        steps = settings.epochs * math.ceil(self.rows / settings.batch_size)
        return min(steps, settings.max_steps or steps)

    @cached_property
    def result(self) -> Trained:
        """Where the trained model is kept."""
        parts = [self.made_from, asdict(self.settings), self.device.split(":")[0]]
        return Trained(self.kind, sha256_json([*parts, training_code(type(self).__module__, ARCHITECTURES)]))


Spec = TypeVar("Spec", bound=TrainingSpec)
Message = tuple[int, int, float, float]
"""What a run reports: step, steps, loss, best score on dev, or minus the lowest loss."""


def train_or_find(spec: TrainingSpec, report: Callable[[Message], None]) -> TrainingRecord:
    """Return a run's record; train if its result is missing or damaged."""
    result = spec.result
    if not result.is_whole():
        _train(spec, report)
    return spec.record.read(result.folder / "training.json")


def _train(spec: TrainingSpec, report: Callable[[Message], None]) -> None:
    progress, finish = spec.run(lambda *message: report(message))
    with spec.result.writing() as folder:
        fields = _fields(spec, progress) | finish(folder, progress)
        spec.record(**fields).write(folder / "training.json")
    spec.result.checkpoint.unlink(missing_ok=True)


def _fields(spec: TrainingSpec, progress: Progress) -> Fields:
    [best] = [entry for entry in progress.history if entry["step"] == progress.best_step]
    loss = {"best_dev_loss": best["dev_loss"]} if "dev_loss" in best else {}
    what = "mean " if "dev_by_task" in best else ""
    what += "loss is lowest" if spec.is_by_loss else "score is best"
    is_last = spec.optimiser.select == "last"
    return loss | {
        "best_dev": best["dev"],
        "best_step": progress.best_step,
        "steps": progress.step,
        "selection": "the last step" if is_last else f"evaluation whose {what} on dev",
        "settings": spec.settings,
        "history": progress.history,
        "computed_on": computed_on(spec.device),
    }


def train_all(
    specs: Sequence[TrainingSpec], engine: Engine, on_progress: Callable[[int, Message], None]
) -> Iterator[tuple[int, TrainingRecord]]:
    """Yield (index, record) as the runs finish; of identical runs, only the first is executed.

    Two rows may define the same run, and two processes must not write one result.  The longest
    start first; otherwise a long one started last would leave the other cores idle.
    """
    check_state_folder()
    alike: dict[str, list[int]] = {}
    for number, spec in enumerate(specs):
        alike.setdefault(spec.result.key, []).append(number)
    rows = [spec.planned_steps * spec.settings.batch_size for spec in specs]
    groups = sorted(alike.values(), key=lambda group: -rows[group[0]])
    firsts = [specs[group[0]] for group in groups]

    def pass_on(group: int, message: Message) -> None:
        on_progress(groups[group][0], message)

    for group, record in engine.run(train_or_find, firsts, pass_on):
        for number in groups[group]:
            yield number, record
