"""Joint training: one student distilled from the teachers of several tasks at once.

Liu 2020, section 4.2 and algorithm 1: every batch is from one task, the batches of all tasks are
merged and shuffled each epoch, and a batch's loss is that of its task.  In the end each task has an
ordinary student; fine-tuning it on its own task is left to a method.
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch

from pipeline_lib.base.files import sha256_folder
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.fitting import check_fits
from pipeline_lib.models.networks.architectures import ENCODERS
from pipeline_lib.models.networks.imitation import JointNetwork
from pipeline_lib.models.students.student import attend_quickly, predict_sentences, save_student
from pipeline_lib.models.students.vocabulary import vector_source, write_vocabulary
from pipeline_lib.params import JOINT_OBJECTIVE, Joint, Optimiser, Params, StudentSettings, Task
from pipeline_lib.shards.fingerprint import code_of
from pipeline_lib.shards.shard_sets import SetReference, check_answers, read_manifest
from pipeline_lib.shards.training_records import JointRecord, StudentRecord, TasksRecord
from pipeline_lib.shards.training_texts import training_texts
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.dev_scores import dev_score, scale_of
from pipeline_lib.training.distillation.encoded_sets import Encoded, EncodedInput, EncodedTraining, standardised
from pipeline_lib.training.distillation.initialisation import start_of
from pipeline_lib.training.loop import Batch, ScoresByTask
from pipeline_lib.training.mixed import MixedBatches
from pipeline_lib.training.objectives import TERMS, objective_loss
from pipeline_lib.training.runs import Fields, Prepared
from pipeline_lib.training.search import Searched, TrainingRow


@dataclass(frozen=True)
class TaskPart:
    """What one task contributes to a joint run.

    :ivar inputs: its transfer set; :ivar outputs: the teacher's answers.
    :ivar dev: the prepared dev set, on which the task's first metric is computed.
    """

    inputs: SetReference
    outputs: SetReference
    dev: SetReference
    task: Task

    @classmethod
    def of(cls, params: Params, row: Joint, task: str, layout: Layout) -> "TaskPart":
        """Resolve one task of a row."""
        recipe = row.tasks[task]
        inputs = layout.transfer(task, recipe)
        outputs = layout.outputs(task, params.teacher_of(task, row), recipe)
        check_answers(read_manifest(inputs), read_manifest(outputs))
        sets = map(SetReference.to, (inputs, outputs, layout.split(task, "dev")))
        return cls(*sets, params.task(task))

    @property
    def made_from(self) -> list[Any]:
        """The sets, and the settings that count, without names and paths."""
        digests = [reference.digest for reference in (self.inputs, self.outputs, self.dev)]
        task = self.task
        return [*digests, task.metrics[0], task.positive_class, task.is_pair, task.label_names]


@dataclass(frozen=True)
class JointTraining(EncodedTraining):
    """One student of several tasks to train: a row of ``joint`` in params.yaml, and its data.

    :ivar parts: by task; :ivar words: the folder of the words that all tasks share, or of the
        pretrained model whose word pieces the student reads.
    """

    kind: ClassVar[str] = "joint"
    record: ClassVar[type[TasksRecord]] = TasksRecord
    name: str
    row: Joint
    student: StudentSettings
    optimiser: Optimiser
    parts: dict[str, TaskPart]
    words: Path
    seed: int
    rate: float
    device: str

    @property
    def made_from(self) -> Any:
        """The row and its tasks' data in order, without names; the student and vocabulary."""
        names = {"student", "tasks", "optimiser", "teacher"}
        row = self.row.model_dump(exclude=names)
        by_task = [data.made_from for data in self.parts.values()]
        losses = [TERMS[name].loss for name in JOINT_OBJECTIVE]
        kinds = [type(KINDS[data.task.kind]) for data in self.parts.values()]
        code = code_of(ENCODERS[self.student.name()], *losses, *kinds)
        student = self.student.model_dump(exclude={"model"})
        return [row, by_task, student, sha256_folder(self.words), code]

    @cached_property
    def rows(self) -> int:
        """The approximate number of rows that an epoch reads; dropped duplicates reduce it."""
        return sum(part.inputs.rows for part in self.parts.values())

    @property
    def sets(self) -> list[Encoded]:
        """Each task's training set and dev set in turn."""
        encoding = self.encoding
        return [
            (encoding, content)
            for part in self.parts.values()
            for content in (EncodedInput(part.inputs, part.outputs), EncodedInput(part.dev, prepared=True))
        ]

    def prepare(self) -> Prepared:
        """Load the encoded sets, and build the network."""
        device, tasks = torch.device(self.device), [data.task for data in self.parts.values()]
        read = [encoding.read(content) for encoding, content in self.sets]
        trains, devs = read[::2], read[1::2]
        scales = [scale_of(train.targets["labels"]) for train in trains]
        start = start_of(self.words, self.student, self.row.start)
        torch.manual_seed(self.seed)
        students = (start.build(self.student, task.is_pair, task.label_names, task.kind) for task in tasks)
        model = JointNetwork(students).to(device)
        attend_quickly(model.students[0], training=True)
        of_task = dict(zip(self.parts, model.students, strict=True))

        def loss(_: JointNetwork, batch: Batch) -> torch.Tensor:
            name = batch["task"]
            kind = self.parts[name].task.kind
            return objective_loss(JOINT_OBJECTIVE, of_task[name].outputs(batch), batch, None, kind)

        def evaluate(model: JointNetwork) -> ScoresByTask:
            scores = []
            for student, task, dev, scale in zip(model.students, tasks, devs, scales, strict=True):
                results = dev.targets["labels"], predict_sentences(student, dev, device)
                settings = self.optimiser.select, scale
                scores.append(dev_score(task.metrics[0], task.positive_class, *results, *settings))
            return ScoresByTask(scores, [len(dev) for dev in devs])

        def finish(folder: Path, _: Progress) -> Fields:
            for number, (student, scale) in enumerate(zip(model.students, scales, strict=True)):
                if scale is not None:
                    scale.rescale(student.logits)
                save_student(folder / str(number), student, start.tokenizer)
            return {
                "rows": sum(map(len, trains)),
                "by_task": [
                    {"rows_of_task": len(train), "label_scale": scale and asdict(scale)}
                    for train, scale in zip(trains, scales, strict=True)
                ],
            }

        sorted_sets = {
            task: LengthSorted(standardised(train, scale), self.optimiser.batch_size, self.seed)
            for task, train, scale in zip(self.parts, trains, scales, strict=True)
        }
        batches = MixedBatches(sorted_sets, self.seed)
        return Prepared(model, batches, loss, evaluate, finish)

    def write(self, folder: Path, record: TasksRecord) -> None:
        """Write training.json with the scores of each task by its name, and the tasks' students.

        A task's student is in the folder of the task's name, with a record as if it were trained
        alone: another task's name in it would change whatever depends on it.
        """
        students = {}
        for number, task in enumerate(self.parts):
            self.result.link_into(folder / task, str(number))
            students[task] = record.of_task(number, StudentRecord)
            students[task].write(folder / task / "training.json")
        JointRecord.of(record, students).write(folder / "training.json")


def write_joint_vocabulary(params: Params, name: str, layout: Layout) -> int:
    """Write the words of all tasks' training and unlabelled texts with their vectors; return how many there are."""
    row, settings = params.joint[name], params.vocabulary
    sets = [training_texts(layout.split(task, "train")) for task in row.tasks]
    source, target = vector_source(settings, layout), layout.joint_vocabulary(name)
    words, _ = write_vocabulary(sets, settings, source, target)
    return words


def joint_row(params: Params, name: str, layout: Layout, device: str) -> TrainingRow[JointTraining]:
    """Return the runs of one row of ``joint``, by seed and learning rate."""
    row = params.joint[name]
    student, optimiser = params.students[row.student], params.optimisers[row.optimiser]
    tasks = {task: TaskPart.of(params, row, task, layout) for task in row.tasks}
    words = layout.joint_vocabulary(name)
    if student.source_model is not None:
        words = layout.model(student.source_model)
        check_fits(f"students.{row.student}", student, words)
    same = name, row, student, optimiser, tasks, words
    rates = optimiser.learning_rates
    return TrainingRow(name, rates, params.seeds, lambda seed, rate: JointTraining(*same, seed, rate, device))


def write_students(searched: Searched[JointTraining], layout: Layout) -> None:
    """Write the students of one row, ``<seed>/<task>``, and their learning-rate search."""
    for seed, (training, record) in searched.trainings.items():
        folder = layout.joint_students(training.name, seed)
        training.write(folder, record)
        for task in training.parts:
            searched.write(folder / task)
