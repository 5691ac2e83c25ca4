"""Training students from plans."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import link_or_copy, sha256_folder
from pipeline_lib.base.kinds import KINDS, score
from pipeline_lib.models.networks.architectures import ENCODERS
from pipeline_lib.models.networks.imitation import Imitation
from pipeline_lib.models.networks.student import StudentNetwork
from pipeline_lib.models.students.sentence_encoder import with_vectors
from pipeline_lib.models.students.student import attend_quickly, load_student, predict_sentences, save_student
from pipeline_lib.params import Optimiser, StudentSettings
from pipeline_lib.shards.fingerprint import code_of
from pipeline_lib.shards.shard_sets import SetReference, read_manifest
from pipeline_lib.shards.training_records import StudentRecord
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.dev_scores import LabelScale, dev_score, scale_of
from pipeline_lib.training.distillation.encoded_sets import Encoded, EncodedInput, EncodedTraining, standardised
from pipeline_lib.training.distillation.factorising import factorised
from pipeline_lib.training.distillation.initialisation import start_from_encoder, start_of
from pipeline_lib.training.distillation.online_teacher import RunningTeacher, held_back_loss
from pipeline_lib.training.distillation.plans import ModelReference, Plan
from pipeline_lib.training.loop import Batch, DevScore
from pipeline_lib.training.objectives import TERMS, objective_loss
from pipeline_lib.training.runs import Fields, Prepared


@dataclass(frozen=True)
class StudentTraining(EncodedTraining):
    """Everything that determines the training of one student: plan, vocabulary, prepared dev set, seed, rate."""

    kind: ClassVar[str] = "students"
    record: ClassVar[type[StudentRecord]] = StudentRecord
    plan: Plan
    vocabulary: Path
    dev: SetReference
    seed: int
    rate: float
    device: str

    @property
    def optimiser(self) -> Optimiser:
        """The plan's."""
        return self.plan.optimiser

    @property
    def student(self) -> StudentSettings:
        """The plan's."""
        return self.plan.student

    @property
    def is_by_loss(self) -> bool:
        """Whether the lowest loss on dev is kept: of dev's labels, or of layers alone."""
        return super().is_by_loss or self.plan.objective.is_of_layers

    @property
    def made_from(self) -> Any:
        """The plan without names and paths, the vocabulary, the dev set."""
        paths = {"folder", "iterations"}
        names = {"task": True, "method": True, "inputs": paths, "outputs": paths, "states": paths}
        names |= {"encoder": {"folder"}, "students": True, "model": {"folder"}}
        names |= {"teacher": {"folder"}, "student": {"model"}, "optimiser": True}
        names |= {"dev_outputs": paths}
        settings = self.plan.model_dump(exclude=names)
        if self.plan.encoder is not None:
            settings["start"] = "encoder"
        if self.plan.students is not None:
            settings |= {"start": "student", "from": self.plan.student_start(self.seed).digest}
        words = None if self.started_from else sha256_folder(self.vocabulary)
        losses = [TERMS[name].loss for name in self.plan.objective.weights]
        code = code_of(ENCODERS[self.plan.student.name()], *losses, type(KINDS[self.plan.kind]))
        return [settings, words, self.dev.digest, code]

    @cached_property
    def rows(self) -> int:
        """The approximate number of rows that an epoch reads; dropped duplicates reduce it."""
        return self.plan.inputs.rows

    @property
    def unanswered(self) -> int:
        """The number of rows left out because the teacher did not answer them."""
        outputs = self.plan.outputs
        if outputs is None:
            return 0
        shards = read_manifest(Path(outputs.folder)).upto(outputs.iterations).shards
        return sum((shard.counts or {}).get("unanswered", 0) for shard in shards)

    @property
    def started_from(self) -> ModelReference | None:
        """The model that it starts from: a student, an encoder, or a pretrained one."""
        student = self.plan.student_start(self.seed) if self.plan.students else None
        return student or self.plan.encoder or self.plan.model

    @cached_property
    def words(self) -> Path:
        """The folder of the tokenizer: the task's, or that of the model it starts from."""
        return self.started_from.open() if self.started_from else self.vocabulary

    @property
    def sets(self) -> list[Encoded]:
        """The sets that it is trained and evaluated on."""
        plan, encoding = self.plan, self.encoding
        train = EncodedInput(plan.inputs, plan.outputs, states=plan.states)
        return [(encoding, train), (encoding, EncodedInput(self.dev, plan.dev_outputs, prepared=True))]

    def prepare(self) -> Prepared:
        """Load the encoded sets, and build the student."""
        plan, device = self.plan, torch.device(self.device)
        train, dev = (encoding.read(content) for encoding, content in self.sets)
        scale = scale_of(train.targets["labels"])
        model, tokenizer = self._started(scale)
        attend_quickly(model.to(device), training=True)
        if plan.student.is_frozen:
            train, dev = (with_vectors(model, sentences, device) for sentences in (train, dev))
        teacher = self._running_teacher(model, tokenizer)
        if teacher is not None and plan.students is not None:
            # Students that start from others draw nothing else at random.
            torch.manual_seed(self.seed)
        trained = model if teacher is None else Imitation(model, teacher.width).to(device)

        def loss(trained: StudentNetwork | Imitation, batch: Batch) -> torch.Tensor:
            objective, outputs = plan.objective, trained.outputs(batch)
            targets = batch if teacher is None else {**batch, **teacher.targets(batch)}
            options = objective.temperature, plan.kind, objective.parameters
            return objective_loss(objective.weights, outputs, targets, *options)

        def evaluate(trained: StudentNetwork | Imitation) -> float | DevScore:
            if plan.objective.is_of_layers:
                options = plan.objective.weights, plan.optimiser.batch_size, device
                return -held_back_loss(trained, teacher, dev, *options)
            return score_on_dev(plan, dev.targets["labels"], predict_sentences(model, dev, device), scale)

        def finish(folder: Path, _: Progress) -> Fields:
            smaller = factorised(model)
            fields = finish_student(smaller, scale, dev, plan, device)
            save_student(folder, smaller, tokenizer)
            return fields | {"rows": len(train), "unanswered": self.unanswered}

        batches = LengthSorted(standardised(train, scale), self.settings.batch_size, self.settings.seed)
        return Prepared(trained, batches, loss, evaluate, finish)

    def _running_teacher(self, model: StudentNetwork, tokenizer: Any) -> RunningTeacher | None:
        """Load the teacher that runs alongside, and make the student return what is compared."""
        plan = self.plan
        if plan.teacher is None:
            return None
        scores, folder = "attentions" in plan.objective.weights, plan.teacher.open()
        return RunningTeacher.load(folder, plan.teacher_layers, model, tokenizer, self.device, scores)

    def _started(self, scale: LabelScale | None) -> tuple[StudentNetwork, Any]:
        """Return the student as its training starts, and its tokenizer."""
        plan = self.plan
        task = {"pair": plan.pair, "kind": plan.kind}
        if plan.students is None:
            if plan.encoder is None:
                start = start_of(self.words, plan.student, plan.start)
            else:
                start = start_from_encoder(self.words, plan.student)
            torch.manual_seed(self.seed)
            return start.build(plan.student, labels=plan.labels, **task), start.tokenizer
        student = load_student(self.words)
        if plan.new_outputs:
            torch.manual_seed(self.seed)
            config = replace(student.model.config, label_names=plan.labels, **task)
            model = StudentNetwork(config)
            model.encoder = student.model.encoder
            return model, student.tokenizer
        if scale is not None:
            # Its outputs are in the labels' unit, but it is trained in standard units.
            scale.inverse.rescale(student.model.logits)
        return student.model, student.tokenizer


def plans_in_turn(plans: Sequence[Plan]) -> list[list[Plan]]:
    """Return a task's plans to train, in turns: each starts only from students of earlier turns."""
    ready = {None, *(plan.method for plan in plans if plan.optimiser is None)}
    left, turns = [plan for plan in plans if plan.optimiser is not None], []
    while left:
        turn = [plan for plan in left if plan.row_before in ready]
        if not turn:
            raise PotstillError(
                f"{left[0].task} {left[0].method}: its start, the row {left[0].row_before}, is "
                "no row of this task. Widen that row's `tasks`, or name another start."
            )
        turns.append(turn)
        ready |= {plan.method for plan in turn}
        left = [plan for plan in left if plan not in turn]
    return turns


def take_students(plan: Plan, seeds: Sequence[int], target: Path) -> dict[int, StudentRecord]:
    """Link a joint run's students and search into ``<target>/<seed>`` as they are; return their records."""
    folders = {seed: plan.student_start(seed).open() for seed in seeds}
    for seed, folder in folders.items():
        for path in sorted(folder.iterdir()):
            link_or_copy(path, target / str(seed) / path.name)
    link_or_copy(folders[seeds[0]] / "search.json", target / "search.json")
    return {seed: StudentRecord.read(folder / "training.json") for seed, folder in folders.items()}


def finish_student(
    model: StudentNetwork, scale: LabelScale | None, dev: Sentences, plan: Plan, device: torch.device
) -> Fields:
    """Rescale the student to the labels' unit and move its threshold; return what its record says of both."""
    fields: Fields = {"threshold_shift": 0.0, "label_scale": None}
    if scale is not None:
        scale.rescale(model.logits)
        fields["label_scale"] = asdict(scale)
    if plan.threshold is not None:
        outputs, labels = predict_sentences(model, dev, device), dev.targets["labels"]
        shifts = _shifts(plan, labels, outputs)
        with torch.no_grad():
            model.logits.bias -= torch.from_numpy(shifts).to(model.logits.bias)
        fields["threshold_shift"] = shifts.tolist()
    return fields


def score_on_dev(plan: Plan, labels: np.ndarray, outputs: np.ndarray, scale: LabelScale | None) -> DevScore:
    """Score a student's outputs with the threshold that it would get, (rows, outputs); see :func:`dev_score`.

    What serves the metric best says nothing of the loss, which is that of the outputs as they are.
    """
    scored = dev_score(plan.metric, plan.positive, labels, outputs, plan.optimiser.select, scale)
    if plan.threshold is None:
        return scored
    moved = outputs - _shifts(plan, labels, outputs)
    return replace(scored, score=score(plan.metric, labels, moved, plan.positive))


def _shifts(plan: Plan, labels: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Return what the plan's threshold subtracts from each output, float64 (outputs,)."""
    return KINDS[plan.kind].shifts(labels, outputs, plan.metric, plan.positive)
