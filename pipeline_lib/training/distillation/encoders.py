"""Distilling without a task: an encoder trained on a model's sentence vectors.

Wu et al. 2020, sections 3.1 and 3.2 (SRA), for a BiLSTM; Vujanic and Rueckstiess 2025 (LEAF), for a few layers of a
pretrained model.  The vectors of BERT-like models share a large common direction, so even a constant vector reaches
a low loss: that loss is reported next to the encoder's, and ``centre`` subtracts the mean from the targets.  If
vectors come from files, sentences without one are left out.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.text import MASK
from pipeline_lib.base.words import split_words
from pipeline_lib.models.networks.architectures import ENCODERS
from pipeline_lib.models.students.sentence_encoder import Targets, encode_sentences, save_encoder
from pipeline_lib.models.students.student import attend_quickly
from pipeline_lib.models.students.vocabulary import (
    build_vocabulary,
    count_normalised,
    count_words,
    select_words,
    vector_source,
)
from pipeline_lib.params import Encoder, Optimiser, Params, StudentSettings
from pipeline_lib.shards.fingerprint import code_of
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.training_records import SEED, EncoderRecord, VectorEncoderRecord
from pipeline_lib.shards.training_texts import training_texts
from pipeline_lib.shards.vectors import StoredVectors, unit
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.distillation.collapse_checks import sample_rows, spread_figures
from pipeline_lib.training.distillation.corpus import Corpus
from pipeline_lib.training.distillation.initialisation import Start, start_of
from pipeline_lib.training.loop import Batch
from pipeline_lib.training.objectives import objective_loss
from pipeline_lib.training.runs import Fields, Prepared, TrainingSpec

_CHUNK = 8192


@dataclass(frozen=True)
class EncoderTraining(TrainingSpec):
    """One encoder to train: a row of ``encoders`` in params.yaml, and the artifacts it reads."""

    kind: ClassVar[str] = "encoders"
    is_by_loss: ClassVar[bool] = True
    seed: ClassVar[int] = SEED
    record: ClassVar[type[EncoderRecord]] = VectorEncoderRecord
    params: Params
    name: str
    layout: Layout
    rate: float
    device: str

    @property
    def row(self) -> Encoder:
        """The row."""
        return self.params.encoders[self.name]

    @property
    def student(self) -> StudentSettings:
        """The settings of the student whose encoder this is."""
        return self.params.students[self.row.student]

    @property
    def optimiser(self) -> Optimiser:
        """How it is trained."""
        return self.params.optimisers[self.row.optimiser]

    @property
    def model(self) -> Path | None:
        """The folder of the pretrained model whose layers the student uses, if any."""
        source = self.student.source_model
        return None if source is None else self.layout.model(source)

    @property
    def made_from(self) -> Any:
        """What it is made of, without names."""
        row = self.row.model_dump(exclude={"student", "optimiser", "wikipedia", "tasks"})
        return [
            row,
            self.student.model_dump(exclude={"model"}),
            *self._start_digests,
            self.train.digest,
            self.validation.digest,
            *code_of(ENCODERS[self.student.name()]),
            # The encoder's record says whose vectors it learned: for files, no model's.
            *(["given"] if self._targets(None).pooling is None else []),
        ]

    @property
    def _start_digests(self) -> list[Any]:
        if self.model is not None:
            return [sha256_folder(self.model)]
        words = [self._texts(task).manifest.digest for task in self.row.tasks]
        vectors = sha256_folder(vector_source(self.params.vocabulary, self.layout))
        return [self.params.vocabulary.model_dump(), words, vectors]

    @cached_property
    def rows(self) -> int:
        """The number of sentences that an epoch reads."""
        return len(self.train.vectors())

    @property
    def train(self) -> Corpus:
        """The training sentences: Wikipedia's, and those of the included tasks."""
        joined = [(task, recipe) for task, recipe in self.row.tasks.items() if recipe]
        sets = [(self.layout.transfer(*key), self.layout.task_vectors(*key)) for key in joined]
        wikipedia = self._wikipedia("train")
        return Corpus([(*wikipedia, self.row.wikipedia), *((*_opened(pair), None) for pair in sets)])

    @property
    def validation(self) -> Corpus:
        """The sentences of Wikipedia's held-out articles."""
        return Corpus([(*self._wikipedia("validation"), None)])

    def _targets(self, mean: np.ndarray | None) -> Targets:
        """Return the record of the encoder's targets, from the vectors' manifest."""
        made_from = self._wikipedia("train")[1].manifest.made_from
        return Targets(made_from["teacher"], made_from["pooling"], made_from["max_length"], mean)

    def _wikipedia(self, split: str) -> tuple[ShardSet, ShardSet]:
        return _opened((self.layout.wikipedia(split), self.layout.wikipedia_vectors(split)))

    def _texts(self, task: str) -> ShardSet:
        return training_texts(self.layout.split(task, "train"))

    def _start(self) -> Start:
        if self.model is not None:
            return start_of(self.model, self.student, "model")
        words = self.params.vocabulary
        source = vector_source(words, self.layout)
        tokenizer, vectors = build_vocabulary(self.words(), words, source)
        return Start(tokenizer, *vectors.shape, vectors)

    def words(self) -> list[str]:
        """Return a student's vocabulary: the corpus's words, and those of the tasks' training and unlabelled texts."""
        vocabulary = self.params.vocabulary
        counts = count_normalised(self._corpus_words(), vocabulary.lowercase)
        chosen = set(select_words(counts, self.row.min_count))
        for task in self.row.tasks:
            words = count_words(self._texts(task).tables())
            task_counts = count_normalised(words, vocabulary.lowercase)
            chosen |= set(task_counts)
            counts += task_counts
        return select_words(Counter({word: counts[word] for word in chosen}), 1)

    def _corpus_words(self) -> Iterator[str]:
        inputs = ShardSet.open(self.layout.wikipedia("train"))
        left = self.row.wikipedia
        for rows in inputs.tables():
            rows = rows.slice(0, left)
            left = None if left is None else left - rows.num_rows
            for text in rows["text"].to_pylist():
                yield from (word for word in split_words(text)[0] if word != MASK)

    def prepare(self) -> Prepared:
        """Read the corpus, and build the encoder."""
        check_vectors(self)
        start, limit, device = self._start(), self.student.max_words, torch.device(self.device)
        train, held_back = (c.read(start.tokenizer, limit) for c in (self.train, self.validation))
        targets = train.targets["vectors"]
        mean = mean_of(targets, lambda vectors: vectors) if self.row.centre else 0.0
        centre = torch.as_tensor(mean, dtype=torch.float32, device=device)
        torch.manual_seed(self.seed)
        model = start.encoder(self.student).to(device)
        attend_quickly(model, training=True)

        def loss(model: nn.Module, batch: Batch) -> torch.Tensor:
            vector = model(batch["ids"], batch["lengths"]).float()
            centred = {"vectors": batch["vectors"] - centre}
            return objective_loss({"vectors": 1.0}, {"vector": vector}, centred)

        def evaluate(model: nn.Module) -> float:
            answers = encode_sentences(model, held_back, device)
            return -held_back_loss(answers, held_back.targets["vectors"], mean)

        def finish(folder: Path, progress: Progress) -> Fields:
            save_encoder(folder, model, start.tokenizer, self.student, start.pretrained)
            self._targets(mean if self.row.centre else None).save(folder)
            answers = encode_sentences(model, held_back, device)
            chosen, expected = sample_rows(len(held_back)), held_back.targets["vectors"]
            spread = spread_figures(answers[chosen], expected[chosen] - mean)
            constant = mean_of(targets, lambda vectors: unit(vectors - mean))
            rows = np.broadcast_to(constant, (len(held_back), len(constant)))
            return losses_of(progress, train, held_back) | {
                "words": start.words,
                "centred": self.row.centre,
                "constant_loss": held_back_loss(rows, held_back.targets["vectors"], mean),
                **spread.model_dump(),
            }

        batches = LengthSorted(train, self.optimiser.batch_size, self.seed)
        return Prepared(model, batches, loss, evaluate, finish)


def losses_of(progress: Progress, train: Sentences, held_back: Sentences) -> Fields:
    """Return what the record of any encoder has: its scores on dev are losses, whose sign was changed."""
    return {
        "sentences": len(train),
        "held_back_sentences": len(held_back),
        "loss": -progress.best_merit,
        "history": [{**entry, "dev": -entry["dev"]} for entry in progress.history],
    }


def _opened(folders: tuple[Path, Path]) -> tuple[ShardSet, ShardSet]:
    return ShardSet.open(folders[0]), ShardSet.open(folders[1])


def check_vectors(training: EncoderTraining) -> None:
    """Check that there are vectors of the right width to train and evaluate on."""
    for corpus, what in ((training.train, "train on"), (training.validation, "hold back")):
        vectors = corpus.vectors()
        if not len(vectors):
            raise no_sentences(training.name, what)
        width, expected = vectors.shape[1], training.student.sentence_width
        if width != expected:
            raise PotstillError(
                f"students.{training.row.student}.width: {expected}, but the teacher's vectors "
                f"have {width} values. Set it to {width}."
            )


def no_sentences(name: str, what: str) -> PotstillError:
    """Return the error for an encoder without sentences to train on, or to hold back."""
    return PotstillError(
        f"encoders.{name}: there are no sentences to {what}. Set `wikipedia` in params.yaml to a source with more of "
        "them, or remove the encoder."
    )


def mean_of(vectors: StoredVectors, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the mean of all vectors after transforming each, float64 (width,)."""
    total = np.zeros(vectors.shape[1])
    for rows in _chunks(vectors):
        total += change(vectors[rows].astype(np.float64)).sum(0)
    return total / len(vectors)


def held_back_loss(answers: np.ndarray, targets: StoredVectors, mean: np.ndarray | float) -> float:
    """Return the mean of ½(1 − cos) between answers and targets minus ``mean``."""
    total = 0.0
    for rows in _chunks(targets):
        products = unit(answers[rows].astype(np.float64)) * unit(targets[rows] - mean)
        total += float((1.0 - products.sum(1)).sum() / 2)
    return total / len(targets)


def _chunks(vectors: Sized) -> Iterator[np.ndarray]:
    """Yield the row numbers of a few vectors at a time."""
    numbers = np.arange(len(vectors))
    return (numbers[start : start + _CHUNK] for start in range(0, len(vectors), _CHUNK))
