"""Fine-tuning the teacher with a list of learning rates; the best epoch of the best rate is kept.

As in Tang et al. 2019, section 4: Adam, never on augmented data; no class weights.  A probe, a linear layer over the
mean states, is a teacher of its own, or where fine-tuning starts (Kumar et al. 2022: first the one, then all).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import torch

from pipeline_lib.base.devices import resolve_precision
from pipeline_lib.base.errors import PotstillError, faults_of
from pipeline_lib.base.files import link_or_copy
from pipeline_lib.base.kinds import KINDS, label_array, score
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import computed_on
from pipeline_lib.base.seals import check_sealed
from pipeline_lib.base.text import Text
from pipeline_lib.models.networks.attention import use_training_attention
from pipeline_lib.models.networks.layers import replace_dropout
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.models.teacher import Teacher, digest_model, load_classifier
from pipeline_lib.models.vector_model import VectorModel
from pipeline_lib.models.weights import parameter_counts
from pipeline_lib.params import Params, Probe, Select, Task, Tuning
from pipeline_lib.shards.columns import texts
from pipeline_lib.shards.fingerprint import code_of
from pipeline_lib.shards.shard_sets import SetReference, ShardSet
from pipeline_lib.shards.training_records import FITTED, Settings, TeacherRecord, TrainingRecord, TunedTeacherRecord
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.dev_scores import LabelScale, dev_score, scale_of
from pipeline_lib.training.loop import Batch, DevScore, Report, autocast
from pipeline_lib.training.runs import Fields, Finish, Prepared, TrainingSpec
from pipeline_lib.training.search import TrainingRow
from pipeline_lib.training.teachers.probing import PENALTIES, TO_START, Fitted, fit_probe
from pipeline_lib.training.teachers.ranking import CandidateBatches, questions_of, ranking_loss

EVALUATION_TOKENS = 4096
AGREEMENT_ROWS = 2000
"""Training rows for measuring the finished teacher's own agreement, for the alignment proof."""


@dataclass(frozen=True)
class Data:
    """Prepared rows of one split: texts or pairs; labels as :func:`label_array` returns them."""

    texts: list[Text]
    labels: np.ndarray

    @classmethod
    def read(cls, folder: Path) -> "Data":
        """Read a prepared split."""
        return cls.of(ShardSet.open(folder).to_table())

    @classmethod
    def of(cls, table: pa.Table) -> "Data":
        """Extract the columns of a prepared table."""
        return cls(texts(table), label_array(table["label"]))


class TeacherTask(NamedTuple):
    """A task that a teacher is tuned on; ``answer`` is the class of right answers, if it is trained by ranking."""

    train: SetReference
    dev: SetReference
    task: Task
    answer: int | None = None

    @classmethod
    def of(cls, params: Params, task: str, layout: Layout) -> "TeacherTask":
        """Refer to a task's prepared splits."""
        splits = (SetReference.to(layout.split(task, split)) for split in ("train", "dev"))
        return cls(*splits, params.task(task))

    @property
    def made_from(self) -> list[Any]:
        """The rows, classes and metric, without names and folders."""
        digests = [self.train.digest, self.dev.digest]
        task = [self.task.metrics[0], self.task.positive_class, self.task.label_names]
        return [*digests, *task, self.answer, code_of(type(KINDS[self.task.kind]))]


@dataclass(frozen=True)
class TaskTeacher:
    """One task in a training run: its rows, and the model as its teacher.

    :ivar scale: the unit in which a regression is trained.
    :ivar answer: the class of right answers, for a task that is trained by ranking.
    """

    task: Task
    train: Data
    dev: Data
    scale: LabelScale | None
    teacher: Teacher
    max_length: int
    answer: int | None = None

    def sentences(self) -> Sentences:
        """Return the training rows, with a regression's labels standardised."""
        labels, scale = self.train.labels, self.scale
        targets = {"labels": labels if scale is None else scale.standardise(labels)}
        return replace(self.teacher.encode(self.train.texts, self.max_length), targets=targets)

    def batches(self, batch_size: int, seed: int) -> LengthSorted:
        """Return the batches of the training rows; if it is ranked, each with all candidates of its questions."""
        if self.answer is None:
            return LengthSorted(self.sentences(), batch_size, seed)
        return CandidateBatches(self.sentences(), batch_size, seed, questions_of(self.train.texts))

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the loss of the labels, or that which compares a question's candidates."""
        logits = self.teacher.forward(batch).float()
        if self.answer is None:
            return KINDS[self.task.kind].loss(logits, batch["labels"])
        return ranking_loss(logits, batch["labels"], self.answer, batch["candidates"])

    def probe(self, seed: int, penalties: Sequence[float]) -> Fitted:
        """Make the head of a classifier of mean states the linear layer that fits the training labels best."""
        layer = self.teacher.model.classifier
        fitted = self._fitted(self._mean_states(), seed, penalties)
        layer.load_state_dict({"weight": torch.tensor(fitted.weights), "bias": torch.tensor(fitted.bias)})
        return fitted

    def first_answers(self, seed: int) -> dict[str, float]:
        """Return the first metric of two fits, each row answered by one without its fold; nothing is tuned for it."""
        found = {}
        for name, vectors in {"mean states": self._mean_states(), "mean word pieces": self._mean_pieces()}.items():
            outputs = self._fitted(vectors, seed, PENALTIES).held_out
            rows = ~np.isnan(outputs[:, 0])
            found[name] = score(self.task.metrics[0], self.train.labels[rows], outputs[rows], self.task.positive_class)
        return found

    def _fitted(self, vectors: np.ndarray, seed: int, penalties: Sequence[float]) -> Fitted:
        kind, labels = KINDS[self.task.kind], self.sentences().targets["labels"]
        return fit_probe(vectors, labels, kind, len(self.task.label_names), seed, penalties)

    def _mean_states(self) -> np.ndarray:
        teacher = self.teacher
        encoder = teacher.model.eval().base_model
        model = VectorModel(encoder, teacher.tokenizer, teacher.device, "float32", "", "mean")
        return model.answer(self.sentences(), EVALUATION_TOKENS)

    def _mean_pieces(self) -> np.ndarray:
        table, read = self.teacher.model.get_input_embeddings().weight, self.sentences()
        vectors = table.detach().cpu().numpy()[read.ids]
        return np.add.reduceat(vectors, read.offsets[:-1]) / np.diff(read.offsets)[:, None]

    def dev_score(self, select: Select) -> DevScore:
        """Return the task's first metric on dev, and if it selects the loss of dev's labels."""
        outputs = self.teacher.predict(self.dev.texts, self.max_length, EVALUATION_TOKENS)
        metric, positive = self.task.metrics[0], self.task.positive_class
        return dev_score(metric, positive, self.dev.labels, outputs, select, self.scale)

    def rescale(self) -> None:
        """Rescale a regression's outputs to the labels' unit."""
        if self.scale is not None:
            self.scale.rescale(output_layer(self.teacher.model))

    def save(self, folder: Path, precision: str) -> Fields:
        """Save the trained teacher, and return the task's part of the record."""
        self.rescale()
        self.teacher.model.to("cpu").save_pretrained(folder)
        self.teacher.tokenizer.save_pretrained(folder)
        return self.describe(folder, precision)

    def describe(self, folder: Path, precision: str) -> Fields:
        """Return the task's part of the record; its finished teacher is in ``folder``."""
        finished = load_teacher(folder, self.teacher.device, precision)
        return describe(finished, self.train, self.task, self.max_length)


@dataclass(frozen=True)
class TeacherTraining(TrainingSpec):
    """One fine-tuning of a model on a task: everything that determines it.

    :ivar base: folder of the model it starts from; :ivar tasks: the task, by its name.
    :ivar agreement_precision: the dtype in which the finished teacher is run.
    """

    kind: ClassVar[str] = "teachers"
    record: ClassVar[type[TrainingRecord]] = TunedTeacherRecord
    student: ClassVar[None] = None
    base: Path
    tasks: Mapping[str, TeacherTask]
    optimiser: Tuning
    max_length: int
    rate: float
    device: str
    agreement_precision: str

    @property
    def seed(self) -> int:
        """What draws head, dropout and order."""
        return self.optimiser.seed

    @property
    def made_from(self) -> Any:
        """The base, the tasks in order, the head's start, and the other settings."""
        tasks = [data.made_from for data in self.tasks.values()]
        settings = [self.max_length, self.optimiser.freeze_embeddings, self.optimiser.head]
        return [digest_model(self.base), tasks, settings, self.agreement_precision]

    @cached_property
    def rows(self) -> int:
        """How many rows an epoch reads."""
        return sum(data.train.rows for data in self.tasks.values())

    def prepare(self) -> Prepared:
        """Load the rows, and the base with a head for the task."""
        device, precision, taught = torch.device(self.device), self.settings.precision, self.taught()
        if self.optimiser.head == "probe":
            taught.probe(self.seed, TO_START)

        def loss(_: torch.nn.Module, batch: Batch) -> torch.Tensor:
            return taught.loss(batch)

        def evaluate(_: torch.nn.Module) -> DevScore:
            with autocast(device, precision):
                return taught.dev_score(self.optimiser.select)

        def finish(folder: Path, _: Progress) -> Fields:
            return taught.save(folder, self.agreement_precision)

        batches = taught.batches(self.optimiser.batch_size, self.seed)
        return Prepared(taught.teacher.model, batches, loss, evaluate, finish)

    def taught(self) -> TaskTeacher:
        """Load the rows of the one task, and the base with an untrained head for it."""
        [data] = self.tasks.values()
        torch.manual_seed(self.seed)
        model, tokenizer = self.classifier(data)
        return self.part(data, model.to(self.device), tokenizer)

    def classifier(self, data: TeacherTask) -> tuple[Any, Any]:
        """Return the base with an untrained head for a task, and its tokenizer."""
        is_pooled = self.optimiser.head == "probe"
        model, tokenizer = load_classifier(self.base, data.task.label_names, data.task.kind, is_pooled)
        if self.optimiser.freeze_embeddings:
            model.get_input_embeddings().requires_grad_(False)
        replace_dropout(model)
        return model, tokenizer

    def part(self, data: TeacherTask, model: Any, tokenizer: Any) -> TaskTeacher:
        """Read a task's rows, to train a classifier on its device on them."""
        use_training_attention(model)
        precision = self.settings.precision
        teacher = Teacher(model, tokenizer, torch.device(self.device), precision, digest="")
        train, dev = (Data.of(split.open().to_table()) for split in (data.train, data.dev))
        return TaskTeacher(data.task, train, dev, scale_of(train.labels), teacher, self.max_length, data.answer)


@dataclass(frozen=True)
class ProbeTraining(TeacherTraining):
    """A linear layer over the base's mean states, fitted to a task at once."""

    optimiser: Probe

    @property
    def settings(self) -> Settings:
        """Those of one step over all rows, without a rate."""
        return Settings("lbfgs", self.rate, **FITTED | {"batch_size": self.rows}, precision="float32", seed=self.seed)

    def run(self, report: Report) -> tuple[Progress, Finish]:
        """Fit the layer, and score it on dev."""
        taught = self.taught()
        fitted, dev = taught.probe(self.seed, PENALTIES), taught.dev_score(self.optimiser.select)
        report(1, 1, fitted.loss, dev.merit)
        history = [{"step": 1, "epoch": 1.0, "loss": fitted.loss} | dev.fields]

        def finish(folder: Path, _: Progress) -> Fields:
            chosen = {"selection": f"penalty {fitted.penalty:g}, by cross-validation on train"}
            return taught.save(folder, self.agreement_precision) | chosen

        return Progress(1, dev.merit, 1, history=history), finish


def teacher_row(
    params: Params,
    name: str,
    tasks: Mapping[str, TeacherTask],
    layout: Layout,
    device: str,
    kind: type[TeacherTraining] | None = None,
) -> TrainingRow[TeacherTraining]:
    """Return the runs of one row of ``teachers``, by learning rate."""
    teacher = params.teachers[name]
    kind = kind or (ProbeTraining if isinstance(teacher.tuning, Probe) else TeacherTraining)
    precision = resolve_precision(params.precompute.precision, torch.device(device))
    same = layout.model(teacher.model), tasks, teacher.tuning, teacher.max_length
    rates, seeds = teacher.tuning.learning_rates, [teacher.tuning.seed]
    return TrainingRow(name, rates, seeds, lambda _, rate: kind(*same, rate, device, precision))


def describe(teacher: Teacher, train: Data, task: Task, max_length: int) -> Fields:
    """Return a finished teacher's agreement with its training labels, its size and max_length.

    The alignment proof compares the stored outputs with the agreement: misaligned rows would agree
    with their labels only by chance.
    """
    outputs = teacher.predict(train.texts[:AGREEMENT_ROWS], max_length, EVALUATION_TOKENS)
    labels = train.labels[:AGREEMENT_ROWS]
    return {
        "metric": task.metrics[0],
        "training_agreement": KINDS[task.kind].agreement(labels, outputs),
        "parameters": parameter_counts(teacher),
        "max_length": max_length,
    }


def output_layer(model: Any) -> torch.nn.Linear:
    """Return the output layer of a classifier or regressor."""
    linear = [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.Linear) and module.out_features == model.config.num_labels
    ]
    if not linear:
        raise PotstillError(
            f"{type(model).__name__}: no linear output layer, so it cannot learn a regression. "
            "Choose another model in the teacher's row."
        )
    return linear[-1]


def import_teacher(
    finished: Path,
    folder: Path,
    splits: tuple[Data, Data],
    task: Task,
    max_length: int,
    device: torch.device,
    precision: str,
    force: bool,
) -> TeacherRecord:
    """Copy a teacher that was fine-tuned elsewhere into ``folder``; ``splits`` are train and dev; return its record.

    :param force: whether it is used even if its answers contradict dev's labels; the record then says so.
    """
    check_sealed(finished)
    for path in sorted(finished.iterdir()):
        link_or_copy(path, folder / path.name)
    train, dev = splits
    teacher = load_teacher(folder, device, precision)
    outputs = teacher.predict(dev.texts, max_length, EVALUATION_TOKENS)
    faults = faults_of(KINDS[task.kind].check_answers, finished, dev.labels, outputs, task.label_names)
    if faults and not force:
        raise PotstillError(f"{faults[0]} To use it all the same, set `force: true` in its `tuning`.")
    record = TeacherRecord(
        best_dev=score(task.metrics[0], dev.labels, outputs, task.positive_class),
        selection="fine-tuned elsewhere",
        faults=faults,
        computed_on=computed_on(str(device)),
        **describe(teacher, train, task, max_length),
    )
    record.write(folder / "training.json")
    return record
