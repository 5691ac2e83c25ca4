"""Refining a teacher on several tasks at once: one encoder, and a head per task.

Liu 2020 (the thesis), section 4.1.1, after MT-DNN (Liu et al. 2019, section 3 and algorithm 1): a batch is from one
task, the batches of all tasks are merged and shuffled each epoch, and each step updates the encoder and the head of
the batch's task.  In the end each task has an ordinary teacher, and the shared encoder's weights are stored once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors import safe_open

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import link_or_copy, write_json
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.networks.imitation import SharingModels
from pipeline_lib.params import Params, Refining
from pipeline_lib.shards.training_records import TasksRecord, TrainingRecord, TunedTeacherRecord
from pipeline_lib.text.pieces import load_fast_tokenizer
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.loop import Batch, ScoresByTask, autocast
from pipeline_lib.training.mixed import MixedBatches
from pipeline_lib.training.runs import Fields, Prepared
from pipeline_lib.training.search import TrainingRow
from pipeline_lib.training.teachers.finetuning import TeacherTask, TeacherTraining, teacher_row

ENCODER, HEAD = "encoder.safetensors", "head.safetensors"
"""The two files of a refined teacher's weights: those all tasks share, and the task's own."""


class SharedClassifiers(SharingModels):
    """Ordinary transformers classifiers of several tasks that share one encoder; each has its own head."""

    def __init__(self, classifiers: Iterable[Any]) -> None:
        """Join classifiers of one architecture on the first's encoder; a generator keeps one encoder in memory."""
        super().__init__()
        joined, self.heads = [], torch.nn.ModuleList()
        for classifier in classifiers:
            encoder = classifier.base_model
            if encoder is classifier:
                raise PotstillError(
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
        self.classifiers = self.members = tuple(joined)


@dataclass(frozen=True)
class RefinedTraining(TeacherTraining):
    """One fine-tuning of the base on several tasks at once; the results are numbered in the tasks' order."""

    record: ClassVar[type[TrainingRecord]] = TasksRecord
    optimiser: Refining

    def prepare(self) -> Prepared:
        """Load the rows of all tasks, and the base with a head for each."""
        device, precision = torch.device(self.device), self.settings.precision
        torch.manual_seed(self.seed)
        classifiers = (self.classifier(data)[0] for data in self.tasks.values())
        model, tokenizer = SharedClassifiers(classifiers).to(device), load_fast_tokenizer(self.base)
        taught_by_task = {
            name: self.part(data, classifier, tokenizer)
            for (name, data), classifier in zip(self.tasks.items(), model.classifiers, strict=True)
        }

        def loss(_: SharedClassifiers, batch: Batch) -> torch.Tensor:
            return taught_by_task[batch["task"]].loss(batch)

        def evaluate(_: SharedClassifiers) -> ScoresByTask:
            with autocast(device, precision):
                scores = [taught.dev_score(self.optimiser.select) for taught in taught_by_task.values()]
            return ScoresByTask(scores, [len(taught.dev.texts) for taught in taught_by_task.values()])

        def finish(folder: Path, _: Progress) -> Fields:
            for taught in taught_by_task.values():
                taught.rescale()
            save_classifiers(folder, model.to("cpu"), tokenizer)
            described = [
                {
                    "rows": len(taught.train.texts),
                    "label_scale": taught.scale and asdict(taught.scale),
                    **taught.describe(folder / str(number), self.agreement_precision),
                }
                for number, taught in enumerate(taught_by_task.values())
            ]
            return {"by_task": described}

        size, seed = self.optimiser.batch_size, self.seed
        sets = {name: taught.batches(size, seed) for name, taught in taught_by_task.items()}
        batches = MixedBatches(sets, seed)
        return Prepared(model, batches, loss, evaluate, finish)

    def write(self, folders: Mapping[str, Path], record: TasksRecord) -> None:
        """Link each task's teacher into its folder, with a record as if it were trained alone."""
        for number, task in enumerate(self.tasks):
            self.result.link_into(folders[task], str(number))
            teacher = record.of_task(number, TunedTeacherRecord, best_dev_mean=record.best_dev)
            teacher.write(folders[task] / "training.json")


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


def refined_row(params: Params, name: str, layout: Layout, device: str) -> TrainingRow[RefinedTraining]:
    """Return the runs of one row of ``teachers`` that is tuned on all its tasks at once."""
    teacher = params.teachers[name]
    known = filter(teacher.knows, params.tasks)
    tasks = {task: TeacherTask.of(params, task, layout) for task in known}
    ranked = with_answers(name, tasks, teacher.tuning.ranking)
    return teacher_row(params, name, ranked, layout, device, RefinedTraining)


def with_answers(row: str, tasks: Mapping[str, TeacherTask], ranking: Mapping[str, str]) -> dict[str, TeacherTask]:
    """Return a refined teacher's tasks, with the class of right answers for those that ``ranking`` names."""
    answers = {task: answer_class(row, task, label, tasks) for task, label in ranking.items()}
    return {task: data._replace(answer=answers.get(task)) for task, data in tasks.items()}


def answer_class(row: str, name: str, label: str, tasks: Mapping[str, TeacherTask]) -> int:
    """Return the class index of a ranked task's right answers; ``row`` is the teacher's name."""
    where = f"teachers.{row}.tuning.ranking.{name}"
    if name not in tasks:
        raise PotstillError(f"{where}: no such task; there are {', '.join(tasks)}. Correct it.")
    task = tasks[name].task
    if not task.is_pair or len(task.label_names) != 2 or not KINDS[task.kind].one_of:
        raise PotstillError(
            f"{where}: only a task of pairs, a question and a candidate answer, with two labels "
            "can be ranked. Remove it from `ranking`."
        )
    if label not in task.label_names:
        raise PotstillError(
            f"{where}: no label {label!r}; there are {', '.join(task.label_names)}. Name the one of right answers."
        )
    return task.label_names.index(label)
