"""Fine-tuning the teacher with a list of learning rates; the best epoch of the best rate is kept.

As in Tang et al. 2019, section 4: Adam, never on augmented data; no class weights.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import torch

from pipeline_lib.base.devices import resolve_precision, resolve_training_precision
from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import link_or_copy, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import computed_on
from pipeline_lib.base.text import Text
from pipeline_lib.models.networks.attention import use_training_attention
from pipeline_lib.models.networks.dropout import replace_dropout
from pipeline_lib.models.parameter_counts import parameter_counts
from pipeline_lib.models.teacher import Teacher, digest_model, load_classifier, load_teacher
from pipeline_lib.params import FineTuning, Params, Task, Tuning
from pipeline_lib.results.metrics import agreement, check_unit, label_array, score
from pipeline_lib.shards.columns import texts
from pipeline_lib.shards.references import SetReference
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.label_scale import scale_of
from pipeline_lib.training.loop import Batch, Settings, autocast
from pipeline_lib.training.objectives import objective_loss
from pipeline_lib.training.runs import Prepared, Record, TrainingSpec
from pipeline_lib.training.search import TrainingRow

EVALUATION_TOKENS = 4096
AGREEMENT_ROWS = 2000
"""Training rows for measuring the finished teacher's own agreement, for the alignment proof."""


@dataclass(frozen=True)
class Data:
    """Prepared rows of one split: texts or pairs; labels (no null), int64, or float32 scores."""

    texts: list[Text]
    labels: np.ndarray

    @classmethod
    def read(cls, folder: Path) -> "Data":
        """Read a prepared split."""
        return cls.of(ShardSet.open(folder).table())

    @classmethod
    def of(cls, table: pa.Table) -> "Data":
        """Extract the columns of a prepared table."""
        return cls(texts(table), label_array(table["label"]))


@dataclass(frozen=True)
class TeacherTraining(TrainingSpec):
    """One fine-tuning of a model on one task: everything that determines it.

    :ivar base: the model's folder; :ivar train, dev: the task's prepared splits.
    :ivar agreement_precision: the dtype in which the finished teacher is run.
    """

    kind: ClassVar[str] = "teachers"
    base: Path
    train: SetReference
    dev: SetReference
    task: Task
    max_length: int
    tuning: FineTuning
    rate: float
    device: str
    agreement_precision: str

    @property
    def seed(self) -> int:
        """The seed of the teacher's tuning."""
        return self.tuning.seed

    @property
    def settings(self) -> Settings:
        """How the teacher is optimised."""
        return settings_of(self.tuning, self.rate, self.device)

    @property
    def made_from(self) -> Any:
        """The base, the rows, the task's classes and metric, and the other settings."""
        digests = [digest_model(self.base), self.train.digest, self.dev.digest]
        task = [self.task.metrics[0], self.task.positive_class, self.task.label_names]
        settings = [self.max_length, self.tuning.freeze_embeddings]
        return [digests, task, settings, self.agreement_precision]

    @cached_property
    def rows(self) -> int:
        """How many rows an epoch reads."""
        return self.train.rows

    def prepare(self) -> Prepared:
        """Load the rows, and the base with a head for the task."""
        task, device, max_length = self.task, torch.device(self.device), self.max_length
        train, dev = (Data.of(split.open().table()) for split in (self.train, self.dev))
        torch.manual_seed(self.seed)
        model, tokenizer = load_classifier(self.base, task.label_names)
        if self.tuning.freeze_embeddings:
            model.get_input_embeddings().requires_grad_(False)
        use_training_attention(model.to(device))
        replace_dropout(model)
        precision = self.settings.precision
        runner = Teacher(model, tokenizer, device, precision, digest="")
        encoded = runner.encode(train.texts, max_length)
        scale = scale_of(train.labels)
        labels = train.labels if scale is None else scale.standardise(train.labels)
        sentences = replace(encoded, targets={"labels": labels})

        def loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
            outputs = {"logits": runner.forward(batch).float()}
            return objective_loss({"labels": 1.0}, outputs, batch)

        def evaluate(model: torch.nn.Module) -> float:
            with autocast(device, precision):
                outputs = runner.predict(dev.texts, max_length, EVALUATION_TOKENS)
            return score(task.metrics[0], dev.labels, outputs, task.positive_class)

        def finish(folder: Path, _: Progress) -> Record:
            if scale is not None:
                scale.rescale(output_layer(model))
            model.to("cpu").save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            precise = self.agreement_precision
            described = describe(folder, train, task, max_length, device, precise)
            return {"metric": task.metrics[0], **described}

        batches = LengthSorted(sentences, self.tuning.batch_size, self.seed)
        return Prepared(model, batches, loss, evaluate, finish)


def settings_of(tuning: Tuning, rate: float, device: str) -> Settings:
    """Return how a teacher is optimised at one of the learning rates."""
    return Settings(
        optimiser="adam",
        learning_rate=rate,
        schedule="linear",
        warmup=tuning.warmup,
        batch_size=tuning.batch_size,
        epochs=tuning.epochs,
        max_steps=None,
        evaluate_every=None,
        clip_norm=tuning.clip_norm,
        weight_decay=tuning.weight_decay,
        precision=resolve_training_precision(tuning.precision, torch.device(device)),
        seed=tuning.seed,
    )


def teacher_row(
    params: Params, name: str, task: str, layout: Layout, device: str
) -> TrainingRow[TeacherTraining]:
    """Return the runs of one of a task's teachers, by learning rate."""
    teacher = params.teachers[name]
    train, dev = (SetReference.to(layout.split(task, name)) for name in ("train", "dev"))
    precision = resolve_precision(params.precompute.precision, torch.device(device))

    def spec(_: int, rate: float) -> TeacherTraining:
        settings = params.task(task)
        same = layout.model(teacher.model), train, dev, settings, teacher.max_length, teacher.tuning
        return TeacherTraining(*same, rate, device, precision)

    return TrainingRow(name, teacher.tuning.learning_rates, [teacher.tuning.seed], spec)


def describe(
    folder: Path,
    train: Data,
    task: Task,
    max_length: int,
    device: torch.device,
    precision: str,
) -> Record:
    """Return a finished teacher's agreement with its training labels, its size and max_length."""
    finished = load_teacher(folder, device, precision)
    return {
        "training_agreement": training_agreement(finished, train, task, max_length),
        "parameters": parameter_counts(finished),
        "max_length": max_length,
    }


def output_layer(model: Any) -> torch.nn.Linear:
    """Return the output layer of a classifier or regressor.

    :raises DistilleryError: if it has no linear layer: then its outputs cannot be rescaled.
    """
    linear = [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.Linear) and module.out_features == model.config.num_labels
    ]
    if not linear:
        raise DistilleryError(
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
) -> Record:
    """Copy a teacher that was fine-tuned elsewhere into ``folder``; return its record.

    :param splits: the task's train and dev.
    :raises DistilleryError: if it cannot be loaded, or its scores are in another unit than labels.
    """
    for path in sorted(finished.iterdir()):
        link_or_copy(path, folder / path.name)
    train, dev = splits
    teacher = load_teacher(folder, device, precision)
    outputs = teacher.predict(dev.texts, max_length, EVALUATION_TOKENS)
    if task.is_regression:
        check_unit(finished, dev.labels, outputs[:, 0])
    record = {
        "metric": task.metrics[0],
        "best_dev": score(task.metrics[0], dev.labels, outputs, task.positive_class),
        "selection": "fine-tuned elsewhere",
        "computed_on": computed_on(str(device)),
        **describe(folder, train, task, max_length, device, precision),
    }
    write_json(folder / "training.json", record)
    return record


def training_agreement(teacher: Teacher, train: Data, task: Task, max_length: int) -> float:
    """Return the finished teacher's agreement with the first labels of its training set.

    The alignment proof compares the stored outputs with it: misaligned rows would agree with their
    labels only by chance.
    """
    outputs = teacher.predict(train.texts[:AGREEMENT_ROWS], max_length, EVALUATION_TOKENS)
    return agreement(train.labels[:AGREEMENT_ROWS], outputs, task.is_regression)
