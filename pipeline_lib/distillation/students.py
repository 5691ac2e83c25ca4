"""Training students from plans."""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from pipeline_lib.base.devices import resolve_student_precision
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.distillation.data import EncodedInput, EncodingPass
from pipeline_lib.distillation.plans import Plan
from pipeline_lib.distillation.starts import (
    Start,
    start_from_encoder,
    start_from_layers,
    start_from_pieces,
    start_from_vocabulary,
)
from pipeline_lib.engine.passes import run_pieces
from pipeline_lib.engine.protocol import Engine
from pipeline_lib.networks.encoders import ENCODERS
from pipeline_lib.networks.student import StudentNetwork
from pipeline_lib.storage.fingerprint import code_outside
from pipeline_lib.storage.references import SetReference
from pipeline_lib.students.student import attend_quickly, predict_sentences, save_student
from pipeline_lib.tasks.metrics import best_threshold, score
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.batches import LengthSorted
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.label_scale import LabelScale, scale_of
from pipeline_lib.training.loop import Batch, Settings
from pipeline_lib.training.objectives import TERMS, objective_loss
from pipeline_lib.training.runs import Prepared, Record, TrainingSpec
from pipeline_lib.training.search import Row


@dataclass(frozen=True)
class StudentTraining(TrainingSpec):
    """One student to train: everything that determines it.

    :ivar vocabulary: the folder of the task's vocabulary; :ivar dev: the prepared dev set.
    """

    kind: ClassVar[str] = "students"
    plan: Plan
    vocabulary: Path
    dev: SetReference
    seed: int
    rate: float
    device: str

    @property
    def name(self) -> tuple[str, int, float]:
        """What tells it from the task's other trainings: method, seed, learning rate."""
        return self.plan.method, self.seed, self.rate

    @property
    def settings(self) -> Settings:
        """How the student is optimised."""
        precision = resolve_student_precision(
            self.plan.optimiser.precision, torch.device(self.device), self.plan.student.recurrent
        )
        return Settings.of(self.plan.optimiser, self.rate, precision, self.seed)

    @property
    def made_from(self) -> Any:
        """The plan without names and places, the vocabulary, the dev set."""
        place = {"folder", "iterations"}
        names = {"task": True, "method": True, "inputs": place, "outputs": place, "states": place}
        names |= {"encoder": {"folder"}, "model": {"folder"}, "student": {"model"}}
        names |= {"optimiser": True}
        settings = self.plan.model_dump(exclude=names)
        if self.plan.encoder is not None:
            settings["start"] = "encoder"
        own_words = self.plan.encoder is None and self.plan.model is None
        words = sha256_folder(self.vocabulary) if own_words else None
        losses = [TERMS[name].loss for name in self.plan.objective.weights]
        own = code_outside(ENCODERS[self.plan.student.name()], *losses)
        return [settings, words, self.dev.digest, own]

    @cached_property
    def rows(self) -> int:
        """About how many rows an epoch reads; duplicates in the transfer set make it fewer."""
        return self.plan.inputs.rows

    @cached_property
    def words(self) -> Path:
        """The folder of the tokenizer: the task's, or that of the model it starts from."""
        model = self.plan.encoder or self.plan.model
        return model.open() if model else self.vocabulary

    @property
    def train_set(self) -> tuple[EncodingPass, EncodedInput]:
        """How the training set is encoded, and what of."""
        encoding = EncodingPass.of(
            self.words,
            self.plan.student.max_words,
            reads=self.plan.student.reads,
            repeat_originals=self.plan.repeat_originals,
            min_confidence=self.plan.min_confidence,
        )
        own = self.plan
        return encoding, EncodedInput(own.inputs, own.outputs, states=own.states)

    @property
    def dev_set(self) -> tuple[EncodingPass, EncodedInput]:
        """How the dev set is encoded, and what of."""
        student = self.plan.student
        encoding = EncodingPass.of(self.words, student.max_words, reads=student.reads)
        return encoding, EncodedInput(self.dev, prepared=True)

    def prepare(self) -> Prepared:
        """Load the encoded sets, and build the student."""
        plan, device = self.plan, torch.device(self.device)
        train, dev = (
            encoding.read(content) for encoding, content in (self.train_set, self.dev_set)
        )
        start = self.start()
        scale = scale_of(train.targets["labels"])
        torch.manual_seed(self.seed)
        model = start.build(plan.student, plan.pair, plan.labels).to(device)
        attend_quickly(model, training=True)

        def loss(model: StudentNetwork, batch: Batch) -> torch.Tensor:
            objective = plan.objective
            return objective_loss(
                objective.weights, model.outputs(batch), batch, objective.temperature
            )

        def evaluate(model: StudentNetwork) -> float:
            outputs = predict_sentences(model, dev, device)
            return score(plan.metric, dev.targets["labels"], outputs, plan.positive)

        def finish(folder: Path, _: Progress) -> Record:
            shift = _finish(model, scale, dev, plan, device)
            save_student(folder, model, start.tokenizer)
            return {
                "rows": len(train),
                "threshold_shift": shift,
                "label_scale": None if scale is None else asdict(scale),
            }

        batches = LengthSorted(
            _standardised(train, scale), self.settings.batch_size, self.settings.seed
        )
        return Prepared(model, batches, loss, evaluate, finish)

    def start(self) -> Start:
        """Load what the student starts from."""
        plan, with_vectors = self.plan, self.plan.start == "vectors"
        if plan.encoder is not None:
            return start_from_encoder(self.words)
        if plan.model is None:
            return start_from_vocabulary(self.words, with_vectors)
        if plan.student.pretrained:
            return start_from_layers(self.words, plan.student)
        return start_from_pieces(self.words, plan.student, with_vectors)


def student_row(
    plan: Plan, vocabulary: Path, dev: Path, seeds: list[int], device: str
) -> Row[StudentTraining]:
    """Return the trainings of one method of a task, by seed and learning rate.

    :param vocabulary: the task's; :param dev: the prepared dev set.
    """
    reference = SetReference.to(dev)

    def spec(seed: int, rate: float) -> StudentTraining:
        return StudentTraining(plan, vocabulary, reference, seed, rate, device)

    return Row(plan.method, plan.optimiser.learning_rates, seeds, spec)


def encode_sets(rows: list[Row[StudentTraining]], engine: Engine) -> None:
    """Encode what the rows' missing students train on, once each, by all workers."""
    specs = [row.spec(*own) for row in rows for own in row.search()]
    missing = [spec for spec in specs if not spec.result.is_whole()]
    sets: dict[EncodingPass, set[EncodedInput]] = {}
    for spec in missing:
        for encoding, content in (spec.train_set, spec.dev_set):
            sets.setdefault(encoding, set()).add(content)
    for encoding, contents in sets.items():
        pieces = sorted((content.piece for content in contents), key=lambda piece: piece.digest)
        run_pieces(encoding, pieces, engine)


def _finish(
    model: StudentNetwork,
    scale: LabelScale | None,
    dev: Sentences,
    plan: Plan,
    device: torch.device,
) -> float:
    """Have the student answer in the labels' unit; return by how much its threshold was moved."""
    if scale is not None:
        scale.rescale(model.logits)
    if plan.threshold != "dev":
        return 0.0
    shift = best_shift(predict_sentences(model, dev, device), dev, plan)
    with torch.no_grad():
        model.logits.bias[1] -= shift
    return shift


def best_shift(outputs: np.ndarray, dev: Sentences, plan: Plan) -> float:
    """Return what to take off the second class' logit for the plan's metric to be best on dev.

    :param outputs: a student's logits on dev, float32 (rows, 2).
    """
    margins = (outputs[:, 1] - outputs[:, 0]).astype(np.float64)
    return best_threshold(margins, dev.targets["labels"], plan.metric, plan.positive)


def _standardised(sentences: Sentences, scale: LabelScale | None) -> Sentences:
    """Return the sentences with scores in standard units; classes and their logits as they are."""
    if scale is None:
        return sentences
    scores = {n: v for n, v in sentences.targets.items() if n in ("labels", "logits")}
    targets = {name: scale.standardise(values) for name, values in scores.items()}
    return replace(sentences, targets={**sentences.targets, **targets})
