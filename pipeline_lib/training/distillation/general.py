"""General distillation: a small Transformer learns from a model's layers, without any task.

Jiao et al. 2020, section 3.2 (TinyBERT).  A pretrained model runs alongside the student on
Wikipedia's sentences.  The result is saved as a transformers model, with that model's tokenizer.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch

from pipeline_lib.base.files import sha256_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.fitting import check_beside, check_fits
from pipeline_lib.models.networks.architectures import ENCODERS, build_encoder
from pipeline_lib.models.networks.imitation import Imitation
from pipeline_lib.models.students.student import attend_quickly
from pipeline_lib.params import GeneralEncoder, Params
from pipeline_lib.shards.fingerprint import code_of
from pipeline_lib.shards.shard_sets import SetReference
from pipeline_lib.shards.training_records import SEED, EncoderRecord
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.pieces import Pieces
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.distillation.encoders import EncoderTraining, losses_of, no_sentences
from pipeline_lib.training.distillation.initialisation import start_of
from pipeline_lib.training.distillation.online_teacher import RunningTeacher, held_back_loss
from pipeline_lib.training.loop import Batch
from pipeline_lib.training.objectives import objective_loss
from pipeline_lib.training.runs import Fields, Prepared
from pipeline_lib.training.search import TrainingRow


@dataclass(frozen=True)
class GeneralTraining(EncoderTraining):
    """One general distillation: a row of ``encoders`` whose student learns layers."""

    record: ClassVar[type[EncoderRecord]] = EncoderRecord

    @property
    def made_from(self) -> Any:
        """The row, the student and the model without names, and the sentences."""
        row = self.row.model_dump(exclude={"student", "optimiser", "wikipedia"})
        student = self.student.model_dump(exclude={"model"})
        sets = [self._sentences("train").digest, self.rows, self._sentences("validation").digest]
        return [row, student, sha256_folder(self.model), *sets, code_of(ENCODERS[self.student.name()])]

    @cached_property
    def rows(self) -> int:
        """The number of sentences that an epoch reads."""
        count, limit = self._sentences("train").rows, self.row.wikipedia
        return count if limit is None else min(count, limit)

    def _sentences(self, split: str) -> SetReference:
        return SetReference.to(self.layout.wikipedia(split))

    def prepare(self) -> Prepared:
        """Read the sentences, load the model, and build the student."""
        device, weights = torch.device(self.device), self.row.objective.weights
        start = start_of(self.model, self.student, "random")
        train, held_back = (self._read(split, start.tokenizer) for split in ("train", "validation"))
        torch.manual_seed(self.seed)
        reader = build_encoder(self.student, start.words, start.width, start.pretrained).to(device)
        attend_quickly(reader, training=True)
        layers, scores = self.row.teacher_runs.layers, "attentions" in weights
        options = reader, start.tokenizer, self.device, scores
        teacher = RunningTeacher.load_pretrained(self.model, layers, *options)
        trained = Imitation(reader, teacher.width).to(device)

        def loss(trained: Imitation, batch: Batch) -> torch.Tensor:
            return objective_loss(weights, trained.outputs(batch), teacher.targets(batch))

        def evaluate(trained: Imitation) -> float:
            size = self.optimiser.batch_size
            return -held_back_loss(trained, teacher, held_back, weights, size, device)

        def finish(folder: Path, progress: Progress) -> Fields:
            reader.model.to("cpu").save_pretrained(folder)
            start.tokenizer.save(folder)
            return losses_of(progress, train, held_back)

        batches = LengthSorted(train, self.optimiser.batch_size, self.seed)
        return Prepared(trained, batches, loss, evaluate, finish)

    def _read(self, split: str, pieces: Pieces) -> Sentences:
        """Return a split's sentences, tokenized; of those to train on, as many as the row says."""
        texts: list[str] = []
        sentences = self._sentences(split)
        limit = self.rows if split == "train" else sentences.rows
        for rows in sentences.open().tables():
            texts += rows["text"].slice(0, limit - len(texts)).to_pylist()
        if not texts:
            raise no_sentences(self.name, "train on" if split == "train" else "hold back")
        return pieces.number(texts, self.student.max_words)


def encoder_row(params: Params, name: str, layout: Layout, device: str) -> TrainingRow[EncoderTraining]:
    """Return the runs of one row of ``encoders``, of vectors or of layers, by learning rate."""
    row = params.encoder(name)
    student, kind = params.students[row.student], EncoderTraining
    model = None if student.source_model is None else layout.model(student.source_model)
    if model is not None:
        check_fits(f"students.{row.student}", student, model)
    if isinstance(row, GeneralEncoder):
        check_beside(f"encoders.{name}", row, student, model, model)
        kind = GeneralTraining
    rates = params.optimisers[row.optimiser].learning_rates
    return TrainingRow(name, rates, [SEED], lambda _, rate: kind(params, name, layout, rate, device))
