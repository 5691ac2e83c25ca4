"""Refining a teacher on several tasks at once: one encoder, and a head per task.

Liu 2020 (the thesis), section 4.1.1, after MT-DNN (Liu et al. 2019, section 3 and algorithm 1): a
batch is from one task, the batches of all tasks are merged and shuffled each epoch, and each step
updates the encoder and the head of the batch's task.  In the end each task has an ordinary
teacher, and the shared encoder's weights are stored once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from safetensors import safe_open

from pipeline_lib.base.devices import resolve_precision
from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import link_or_copy, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.networks.attention import use_training_attention
from pipeline_lib.models.networks.dropout import replace_dropout
from pipeline_lib.models.teacher import Teacher, digest_model, load_classifier
from pipeline_lib.params import Params, Refining, Task
from pipeline_lib.results.metrics import score
from pipeline_lib.shards.references import SetReference
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.label_scale import LabelScale, scale_of
from pipeline_lib.training.loop import Batch, ScoresByTask, Settings, autocast
from pipeline_lib.training.mixed import MixedBatches
from pipeline_lib.training.objectives import label_loss
from pipeline_lib.training.runs import Prepared, Record, TrainingSpec
from pipeline_lib.training.search import TrainingRow
from pipeline_lib.training.teachers.finetuning import (
    EVALUATION_TOKENS,
    Data,
    describe,
    output_layer,
    settings_of,
)
from pipeline_lib.training.teachers.ranking import CandidateBatches, questions_of, ranking_loss

ENCODER, HEAD = "encoder.safetensors", "head.safetensors"
"""The two files of a refined teacher's weights: those all tasks share, and the task's own."""


class RefinedTask(NamedTuple):
    """What one task contributes to the training: its prepared splits, and its settings.

    :ivar answer: the class of right answers, for a task that is trained by ranking.
    """

    train: SetReference
    dev: SetReference
    task: Task
    answer: int | None = None


class SharedClassifiers(torch.nn.Module):
    """Classifiers of several tasks that share one encoder; each has its architecture's own head.

    :ivar classifiers: ordinary transformers models, which share their weights with this module.
    """

    def __init__(self, classifiers: Iterable[Any]) -> None:
        """Join classifiers of one architecture; the encoder is that of the first.

        :param classifiers: may be a generator, if memory cannot hold an encoder for each.
        :raises DistilleryError: if the architecture does not separate its encoder from its head.
        """
        super().__init__()
        joined, self.heads = [], torch.nn.ModuleList()
        for classifier in classifiers:
            # Before collecting the head's modules, since this replaces some.
            replace_dropout(classifier)
            encoder = classifier.base_model
            if encoder is classifier:
                raise DistilleryError(
                    f"{type(classifier).__name__}: no encoder that several tasks could share. "
                    "Choose another base model, or fine-tune a teacher per task."
                )
            children = classifier.named_children()
            head = {name: child for name, child in children if child is not encoder}
            self.heads.append(torch.nn.ModuleDict(head))
            if not joined:
                self.encoder = encoder
            setattr(classifier, classifier.base_model_prefix, self.encoder)
            joined.append(classifier)
        # torch does not look for modules in a tuple, so the encoder, registered above, counts once.
        self.classifiers = tuple(joined)

    def train(self, mode: bool = True) -> "SharedClassifiers":
        """Set training or evaluation mode, for the classifiers too."""
        for classifier in self.classifiers:
            classifier.train(mode)
        return super().train(mode)


@dataclass(frozen=True)
class _Part:
    """One task in a training run: its rows, and the model as its teacher.

    :ivar scale: the unit in which a regression is trained.
    """

    task: Task
    answer: int | None
    train: Data
    dev: Data
    scale: LabelScale | None
    teacher: Teacher
    max_length: int

    @classmethod
    def of(cls, data: RefinedTask, teacher: Teacher, max_length: int) -> "_Part":
        """Read the rows.

        :raises DistilleryError: if a set is damaged, or a regression's labels are all equal.
        """
        train, dev = (Data.of(split.open().table()) for split in (data.train, data.dev))
        scale = scale_of(train.labels)
        return cls(data.task, data.answer, train, dev, scale, teacher, max_length)

    def batches(self, batch_size: int, seed: int) -> LengthSorted:
        """Return the batches of the training rows, with a regression's labels standardised."""
        labels, scale = self.train.labels, self.scale
        targets = {"labels": labels if scale is None else scale.standardise(labels)}
        encoded = self.teacher.encode(self.train.texts, self.max_length)
        sentences = replace(encoded, targets=targets)
        if self.answer is None:
            return LengthSorted(sentences, batch_size, seed)
        return CandidateBatches(sentences, batch_size, seed, questions_of(self.train.texts))

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the cross-entropy, or a regression's squared error (equations 4.3 and 4.4).

        For candidate answers it is :func:`ranking_loss`.
        """
        logits = self.teacher.forward(batch).float()
        if self.answer is None:
            return label_loss(logits, batch["labels"])
        return ranking_loss(logits, batch["labels"], self.answer, batch["candidates"])

    def dev_score(self) -> float:
        """Return the task's first metric on dev."""
        outputs = self.teacher.predict(self.dev.texts, self.max_length, EVALUATION_TOKENS)
        return score(self.task.metrics[0], self.dev.labels, outputs, self.task.positive_class)

    def rescale(self) -> None:
        """Rescale a regression's outputs to the labels' unit."""
        if self.scale is not None:
            self.scale.rescale(output_layer(self.teacher.model))

    def describe(self, folder: Path, device: torch.device, precision: str) -> Record:
        """Return this task's part of the record; its finished teacher is in ``folder``."""
        return {
            "metric": self.task.metrics[0],
            "rows": len(self.train.texts),
            "label_scale": None if self.scale is None else asdict(self.scale),
            **describe(folder, self.train, self.task, self.max_length, device, precision),
        }


@dataclass(frozen=True)
class RefinedTraining(TrainingSpec):
    """One fine-tuning of the base on several tasks at once: everything that determines it.

    The results are in folders ``0``, ``1``, ... in the order of the tasks: task names do not count.

    :ivar base: folder of the model it starts from; :ivar tasks: by their names.
    :ivar agreement_precision: the dtype in which the finished teachers are run.
    """

    kind: ClassVar[str] = "teachers"
    base: Path
    tasks: Mapping[str, RefinedTask]
    params: Refining
    max_length: int
    rate: float
    device: str
    agreement_precision: str

    @property
    def seed(self) -> int:
        """The settings' seed."""
        return self.params.seed

    @property
    def settings(self) -> Settings:
        """How the teacher is optimised."""
        return settings_of(self.params, self.rate, self.device)

    @property
    def made_from(self) -> Any:
        """The base, the tasks' rows, classes and metrics in order, and the other settings."""
        tasks = [
            [
                *(data.train.digest, data.dev.digest, data.task.label_names, data.answer),
                *(data.task.metrics[0], data.task.positive_class),
            ]
            for data in self.tasks.values()
        ]
        settings = [self.max_length, self.params.freeze_embeddings, self.params.sampling]
        return [digest_model(self.base), tasks, settings, self.agreement_precision]

    @cached_property
    def rows(self) -> int:
        """How many rows an epoch reads."""
        return sum(data.train.rows for data in self.tasks.values())

    def prepare(self) -> Prepared:
        """Load the rows of all tasks, and the base with a head for each.

        :raises DistilleryError: if a set is damaged, or a regression's labels are all the same.
        """
        device, precision = torch.device(self.device), self.settings.precision
        torch.manual_seed(self.seed)
        model, tokenizer = self._untrained(device)
        parts = {}
        for (name, data), classifier in zip(self.tasks.items(), model.classifiers, strict=True):
            use_training_attention(classifier)
            teacher = Teacher(classifier, tokenizer, device, precision, digest="")
            parts[name] = _Part.of(data, teacher, self.max_length)

        def loss(_: SharedClassifiers, batch: Batch) -> torch.Tensor:
            return parts[batch["task"]].loss(batch)

        def evaluate(_: SharedClassifiers) -> ScoresByTask:
            with autocast(device, precision):
                scores = [part.dev_score() for part in parts.values()]
            return ScoresByTask(scores, [len(part.dev.texts) for part in parts.values()])

        def finish(folder: Path, _: Progress) -> Record:
            for part in parts.values():
                part.rescale()
            save_classifiers(folder, model.to("cpu"), tokenizer)
            options = device, self.agreement_precision
            described = [
                part.describe(folder / str(number), *options)
                for number, part in enumerate(parts.values())
            ]
            return {"by_task": described, "selection": "evaluation whose mean is best on dev"}

        size, seed = self.params.batch_size, self.seed
        sampling = None if self.params.sampling == "all" else self.params.sampling
        sets = {name: part.batches(size, seed) for name, part in parts.items()}
        return Prepared(model, MixedBatches(sets, sampling, seed), loss, evaluate, finish)

    def _untrained(self, device: torch.device) -> tuple[SharedClassifiers, Any]:
        """Return the classifiers, each with its head, and their tokenizer."""
        first, *others = [data.task.label_names for data in self.tasks.values()]
        classifier, tokenizer = load_classifier(self.base, first)
        if self.params.freeze_embeddings:
            classifier.get_input_embeddings().requires_grad_(False)
        more = (load_classifier(self.base, names)[0] for names in others)
        model = SharedClassifiers(chain([classifier], more))
        return model.to(device), tokenizer

    def write(self, folders: Mapping[str, Path], record: Record) -> None:
        """Link each task's teacher into its folder, with a record as if it were trained alone.

        :param folders: by task; :param record: the content of the run's ``training.json``.
        """
        for number, task in enumerate(self.tasks):
            self.result.link_into(folders[task], str(number))
            write_json(folders[task] / "training.json", record_of_task(record, number))


def record_of_task(record: Record, number: int) -> Record:
    """Return a refined run's record for one task, with its own score as ``dev``.

    ``best_dev_mean`` is the mean, weighted by dev rows, by which the best evaluation was chosen.
    """
    shared = {key: value for key, value in record.items() if key != "by_task"}
    history = [{**entry, "dev": entry["dev_by_task"][number]} for entry in record["history"]]
    for entry in history:
        del entry["dev_by_task"]
    [best] = [entry["dev"] for entry in history if entry["step"] == record["best_step"]]
    scores = {"history": history, "best_dev": best, "best_dev_mean": record["best_dev"]}
    return shared | scores | record["by_task"][number]


def save_classifiers(folder: Path, model: SharedClassifiers, tokenizer: Any) -> None:
    """Save each classifier into a folder named by its index; the encoder is stored once.

    transformers treats the two files of a classifier's weights as the shards of a large model: each
    folder can be loaded without this library, and copied elsewhere.
    """
    for number, classifier in enumerate(model.classifiers):
        subfolder, prefix = folder / str(number), f"{classifier.base_model_prefix}."
        state = classifier.state_dict()
        head = {name: tensor for name, tensor in state.items() if not name.startswith(prefix)}
        _save_part(classifier, head, subfolder / HEAD)
        if number == 0:
            encoder = {name: tensor for name, tensor in state.items() if name not in head}
            _save_part(classifier, encoder, subfolder / ENCODER)
        else:
            link_or_copy(folder / "0" / ENCODER, subfolder / ENCODER)
        tokenizer.save_pretrained(subfolder)
        write_json(subfolder / "model.safetensors.index.json", _index(subfolder, classifier))


def _save_part(classifier: Any, tensors: dict[str, torch.Tensor], path: Path) -> None:
    classifier.save_pretrained(path.parent, state_dict=tensors)
    (path.parent / "model.safetensors").rename(path)


def _index(folder: Path, classifier: Any) -> dict[str, Any]:
    """Return the index of which file holds each tensor, in transformers' format."""
    files = {}
    for name in (ENCODER, HEAD):
        with safe_open(folder / name, "pt") as tensors:
            files |= dict.fromkeys(tensors.keys(), name)
    size = sum(tensor.nbytes for tensor in classifier.state_dict().values())
    return {"metadata": {"total_size": size}, "weight_map": files}


def refined_teacher_row(
    params: Params, name: str, layout: Layout, device: str
) -> TrainingRow[RefinedTraining]:
    """Return the runs of one row of ``teachers``; see :func:`refined_row`."""
    teacher = params.teachers[name]
    tasks = {
        task: RefinedTask(*(SetReference.to(layout.split(task, s)) for s in ("train", "dev")), one)
        for task, one in params.tasks.items()
        if teacher.knows(task)
    }
    precision = resolve_precision(params.precompute.precision, torch.device(device))
    base = layout.model(teacher.model)
    return refined_row(name, base, tasks, teacher.tuning, teacher.max_length, device, precision)


def refined_row(
    name: str,
    base: Path,
    tasks: Mapping[str, RefinedTask],
    params: Refining,
    max_length: int,
    device: str,
    agreement_precision: str,
) -> TrainingRow[RefinedTraining]:
    """Return the runs of one refined teacher, by learning rate; see :class:`RefinedTraining`.

    :raises DistilleryError: if a task of ``ranking`` does not exist, or cannot be ranked.
    """
    answers = {
        task: answer_class(name, task, label, tasks) for task, label in params.ranking.items()
    }
    ranked = {task: data._replace(answer=answers.get(task)) for task, data in tasks.items()}

    def spec(_: int, rate: float) -> RefinedTraining:
        settings = params, max_length, rate, device, agreement_precision
        return RefinedTraining(base, ranked, *settings)

    return TrainingRow(name, params.learning_rates, [params.seed], spec)


def answer_class(row: str, name: str, label: str, tasks: Mapping[str, RefinedTask]) -> int:
    """Return the class index of a ranked task's right answers.

    :param row: the refined teacher, for messages.
    :raises DistilleryError: if the task does not exist, or does not have pairs and two classes.
    """
    where = f"teachers.{row}.tuning.ranking.{name}"
    if name not in tasks:
        raise DistilleryError(f"{where}: no such task; there are {', '.join(tasks)}. Correct it.")
    task = tasks[name].task
    if not task.is_pair or len(task.label_names) != 2:
        raise DistilleryError(
            f"{where}: only a task of pairs, a question and a candidate answer, with two labels "
            "can be ranked. Remove it from `ranking`."
        )
    if label not in task.label_names:
        raise DistilleryError(
            f"{where}: no label {label!r}; there are {', '.join(task.label_names)}. Name the one "
            "of right answers."
        )
    return task.label_names.index(label)
