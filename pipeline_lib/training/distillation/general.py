"""General distillation: a small Transformer learns from a model's layers, without any task.

Jiao et al. 2020, section 3.2 (TinyBERT).  A pretrained model runs alongside the student on
Wikipedia's sentences.  The result is saved as a transformers model, with that model's tokenizer.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.fitting import check_beside, check_fits
from pipeline_lib.models.networks.encoders import build_encoder
from pipeline_lib.models.networks.imitation import Imitation
from pipeline_lib.models.students.student import attend_quickly
from pipeline_lib.params import BERT, GeneralEncoder, Optimiser, Params
from pipeline_lib.shards.shard_sets import SetReference
from pipeline_lib.shards.training_records import SEED, EncoderRecord
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.pieces import Pieces
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.distillation.initialisation import start_of
from pipeline_lib.training.distillation.online_teacher import RunningTeacher, held_back_loss
from pipeline_lib.training.loop import Batch
from pipeline_lib.training.objectives import objective_loss
from pipeline_lib.training.runs import Fields, Prepared, TrainingSpec
from pipeline_lib.training.search import TrainingRow


@dataclass(frozen=True)
class GeneralTraining(TrainingSpec):
    """One general distillation: a row of ``encoders`` in params.yaml, and what it reads.

    :ivar model: the folder of the pretrained model that runs alongside the student.
    :ivar sentences: Wikipedia's; :ivar held_back: those of held-out articles.
    """

    kind: ClassVar[str] = "encoders"
    is_by_loss: ClassVar[bool] = True
    record: ClassVar[type[EncoderRecord]] = EncoderRecord
    name: str
    row: GeneralEncoder
    student: BERT
    optimiser: Optimiser
    model: Path
    sentences: SetReference
    held_back: SetReference
    rate: float
    device: str

    @property
    def seed(self) -> int:
        """Whatever the row: it is trained once."""
        return SEED

    @property
    def made_from(self) -> Any:
        """The row, the student and the model without names, and the sentences."""
        row = self.row.model_dump(exclude={"student", "optimiser", "wikipedia"})
        student = self.student.model_dump(exclude={"model"})
        sets = [self.sentences.digest, self.rows, self.held_back.digest]
        return [row, student, sha256_folder(self.model), *sets]

    @cached_property
    def rows(self) -> int:
        """The number of sentences that an epoch reads."""
        count, limit = self.sentences.rows, self.row.wikipedia
        return count if limit is None else min(count, limit)

    def prepare(self) -> Prepared:
        """Read the sentences, load the model, and build the student."""
        device, weights = torch.device(self.device), self.row.objective.weights
        start = start_of(self.model, self.student, "random")
        train = self._read(self.sentences, self.rows, start.tokenizer)
        held_back = self._read(self.held_back, self.held_back.rows, start.tokenizer)
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
            return {
                "sentences": len(train),
                "held_back_sentences": len(held_back),
                "loss": -progress.best_merit,
                "history": [{**entry, "dev": -entry["dev"]} for entry in progress.history],
            }

        batches = LengthSorted(train, self.optimiser.batch_size, self.seed)
        return Prepared(trained, batches, loss, evaluate, finish)

    def _read(self, sentences: SetReference, limit: int, pieces: Pieces) -> Sentences:
        """Return the first ``limit`` sentences, tokenized."""
        texts: list[str] = []
        for rows in sentences.open().tables():
            texts += rows["text"].slice(0, limit - len(texts)).to_pylist()
        if not texts:
            raise PotstillError(
                f"encoders.{self.name}: no sentences in {sentences.folder}. Set `wikipedia` in "
                "params.yaml to a source with more of them, or remove the encoder."
            )
        return pieces.number(texts, self.student.max_words)


def general_row(params: Params, name: str, layout: Layout, device: str) -> TrainingRow[GeneralTraining]:
    """Return the runs of one row of ``encoders`` that learns layers, by learning rate."""
    row = params.encoders[name]
    student, optimiser = params.students[row.student], params.optimisers[row.optimiser]
    model = layout.model(student.model)
    check_fits(f"students.{row.student}", student, model)
    check_beside(f"encoders.{name}", row, student, model, model)
    sets = [SetReference.to(layout.wikipedia(split)) for split in ("train", "validation")]

    def spec(_: int, rate: float) -> GeneralTraining:
        return GeneralTraining(name, row, student, optimiser, model, *sets, rate, device)

    return TrainingRow(name, optimiser.learning_rates, [SEED], spec)
