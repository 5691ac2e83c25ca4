"""Distilling without a task: an encoder trained to a model's sentence vectors.

Wu et al. 2020, sections 3.1 and 3.2 (SRA).  The vectors of BERT-like models share a large common
direction, so that one constant vector reaches a low loss already: that loss is reported beside the
encoder's, and ``centre`` subtracts their mean from the targets.  Where vectors stand in files,
sentences without one are left out.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import torch
from tokenizers import Tokenizer
from torch import nn

from pipeline_lib.base.devices import resolve_student_precision
from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.distillation.collapse import sample_rows, spread_figures
from pipeline_lib.params import Encoder, Optimiser, Params, StudentSettings
from pipeline_lib.storage.columns import column_suffixes, matrix
from pipeline_lib.storage.shards import ShardSet
from pipeline_lib.storage.vectors import ChosenVectors, StoredVectors, unit, vector_tables
from pipeline_lib.students.sentence_encoder import encode_sentences, save_encoder, start_encoder
from pipeline_lib.students.targets import Targets
from pipeline_lib.students.vocabulary import (
    build_vocabulary,
    count_normalised,
    select_words,
    vector_source,
)
from pipeline_lib.text.fast_tokenizer import WordNumbers
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.text.words import MASK, split_words
from pipeline_lib.training.batches import LengthSorted
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.loop import Batch, Settings
from pipeline_lib.training.objectives import objective_loss
from pipeline_lib.training.runs import Prepared, Record, TrainingSpec
from pipeline_lib.training.search import Row

_CHUNK = 8192


@dataclass(frozen=True)
class AnsweredVectors(ChosenVectors):
    """The vectors of a corpus less those that nobody gave."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and width."""
        return len(self), *self.stored.shape[1:]


@dataclass(frozen=True)
class Corpus:
    """Sentences with their vectors: shard sets of text, and the vectors that answer to them.

    :ivar limit: how many rows are taken, from the first on; None: all.
    """

    sets: list[tuple[ShardSet, ShardSet, int | None]]

    @property
    def digest(self) -> list[Any]:
        """What the corpus holds."""
        return [(a.manifest.digest, b.manifest.digest, limit) for a, b, limit in self.sets]

    def read(self, tokenizer: Tokenizer, max_words: int) -> Sentences:
        """Return all sentences, numbered, with the target ``vectors``; a pair counts as two.

        Vectors stay in the mapped files until a batch asks for them.
        """
        texts: list[str] = []
        for rows, _, side in self._parts():
            texts += rows[f"text{side}"].to_pylist()
        vectors = self.vectors()
        if isinstance(vectors, AnsweredVectors):
            texts = [texts[row] for row in vectors.rows.tolist()]
        numbered = WordNumbers(tokenizer).number(texts, max_words)
        return replace(numbered, targets={"vectors": vectors})

    def vectors(self) -> StoredVectors | AnsweredVectors:
        """Return the vectors of the sentences that have one, in the order of :meth:`read`."""
        parts = [(vectors, side) for _, vectors, side in self._parts()]
        stored = StoredVectors(parts)
        if not any(outputs.manifest.counts.get("unanswered") for _, outputs, _ in self.sets):
            return stored
        known = np.concatenate([_have_vector(*part) for part in parts])
        return AnsweredVectors(stored, np.flatnonzero(known))

    @property
    def unanswered(self) -> int:
        """How many sentences are left out because they have no vector."""
        vectors = self.vectors()
        return len(vectors.stored) - len(vectors) if isinstance(vectors, AnsweredVectors) else 0

    def _parts(self) -> Iterator[tuple[pa.Table, pa.Table, str]]:
        for inputs, outputs, limit in self.sets:
            left = limit
            for rows, vectors in vector_tables(inputs, outputs):
                rows, vectors = rows.slice(0, left), vectors.slice(0, left)
                left = None if left is None else left - rows.num_rows
                for side in column_suffixes(rows):
                    yield rows, vectors, side


@dataclass(frozen=True)
class EncoderTraining(TrainingSpec):
    """One encoder to train: a row of ``encoders`` in params.yaml, and the artifacts it reads."""

    kind: ClassVar[str] = "encoders"
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
        """The student whose encoder it is."""
        return self.params.students[self.row.student]

    @property
    def optimiser(self) -> Optimiser:
        """How it is trained."""
        return self.params.optimisers[self.row.optimiser]

    @property
    def seed(self) -> int:
        """The row's own seed."""
        return self.row.seed

    @property
    def settings(self) -> Settings:
        """How the encoder is optimised."""
        precision = resolve_student_precision(
            self.optimiser.precision, torch.device(self.device), self.student.recurrent
        )
        return Settings.of(self.optimiser, self.rate, precision, self.seed)

    @property
    def made_from(self) -> Any:
        """What it is made of, without names."""
        words = [ShardSet.open(self._task(t)).manifest.digest for t in self.row.tasks]
        row = self.row.model_dump(exclude={"student", "optimiser", "wikipedia", "tasks", "seed"})
        return [
            *(row, self.student.model_dump(), self.params.vocabulary.model_dump(), words),
            *(self.train.digest, self.validation.digest),
            sha256_folder(vector_source(self.params.vocabulary, self.layout)),
            # Beside an encoder stands whose vectors it learned: of files, no model's.
            *(["given"] if self._targets(None).pooling is None else []),
        ]

    @cached_property
    def rows(self) -> int:
        """How many sentences an epoch reads."""
        return len(self.train.vectors())

    @property
    def train(self) -> Corpus:
        """The sentences trained on: Wikipedia's, and those of the tasks that join it."""
        joined = [(task, recipe) for task, recipe in self.row.tasks.items() if recipe]
        sets = [(self.layout.transfer(*own), self.layout.task_vectors(*own)) for own in joined]
        own = self._wikipedia("train")
        return Corpus([(*own, self.row.wikipedia), *((*_opened(pair), None) for pair in sets)])

    @property
    def validation(self) -> Corpus:
        """Wikipedia's held-back articles."""
        return Corpus([(*self._wikipedia("validation"), None)])

    def _targets(self, mean: np.ndarray | None) -> Targets:
        """Return what the encoder is trained to, as it stands in the vectors' manifest."""
        own = self._wikipedia("train")[1].manifest.made_from
        return Targets(own["teacher"], own["pooling"], own["max_length"], mean)

    def _wikipedia(self, split: str) -> tuple[ShardSet, ShardSet]:
        return _opened((self.layout.wikipedia(split), self.layout.wikipedia_vectors(split)))

    def _task(self, task: str) -> Path:
        return self.layout.split(task, "train")

    def words(self) -> list[str]:
        """Return the vocabulary: the corpus' words, and those of the tasks, however rare."""
        vocabulary = self.params.vocabulary
        found = count_normalised(self._corpus_words(), vocabulary.lowercase)
        kept = set(select_words(found, self.row.min_count))
        for task in self.row.tasks:
            rows = ShardSet.open(self._task(task)).table()
            columns = [rows[f"words{side}"].combine_chunks() for side in column_suffixes(rows)]
            words = (word for column in columns for word in column.flatten().to_pylist())
            own = count_normalised(words, vocabulary.lowercase)
            kept |= set(select_words(own, vocabulary.min_count))
            found += own
        return select_words(Counter({word: found[word] for word in kept}), 1)

    def _corpus_words(self) -> Iterator[str]:
        inputs = ShardSet.open(self.layout.wikipedia("train"))
        left = self.row.wikipedia
        for rows in inputs.tables():
            rows = rows.slice(0, left)
            left = None if left is None else left - rows.num_rows
            for text in rows["text"].to_pylist():
                yield from (word for word in split_words(text)[0] if word != MASK)

    def prepare(self) -> Prepared:
        """Read the corpus, and build the encoder.

        :raises DistilleryError: if there are no sentences, or the student's width is not the
            teacher's.
        """
        check_vectors(self)
        words = self.params.vocabulary
        source = vector_source(words, self.layout)
        tokenizer, vectors = build_vocabulary(self.words(), words, source)
        limit, device = self.student.max_words, torch.device(self.device)
        train, held_back = (c.read(tokenizer, limit) for c in (self.train, self.validation))
        targets = train.targets["vectors"]
        mean = mean_of(targets, lambda found: found) if self.row.centre else 0.0
        centre = torch.as_tensor(mean, dtype=torch.float32, device=device)
        torch.manual_seed(self.seed)
        model = start_encoder(vectors, self.student).to(device)

        def loss(model: nn.Module, batch: Batch) -> torch.Tensor:
            vector = model(batch["ids"], batch["lengths"]).float()
            centred = {"vectors": batch["vectors"] - centre}
            return objective_loss({"vectors": 1.0}, {"vector": vector}, centred)

        def evaluate(model: nn.Module) -> float:
            answers = encode_sentences(model, held_back, device)
            return -held_back_loss(answers, held_back.targets["vectors"], mean)

        def finish(folder: Path, found: Progress) -> Record:
            save_encoder(folder, model, tokenizer, self.student)
            self._targets(mean if self.row.centre else None).save(folder)
            answers = encode_sentences(model, held_back, device)
            chosen, wanted = sample_rows(len(held_back)), held_back.targets["vectors"]
            spread = spread_figures(answers[chosen], wanted[chosen] - mean)
            constant = mean_of(targets, lambda vectors: unit(vectors - mean))
            rows = np.broadcast_to(constant, (len(held_back), len(constant)))
            return {
                "sentences": len(train),
                "held_back_sentences": len(held_back),
                "words": len(vectors),
                "centred": self.row.centre,
                "loss": -found.best_score,
                "constant_loss": held_back_loss(rows, held_back.targets["vectors"], mean),
                **spread,
                "history": [{**own, "dev": -own["dev"]} for own in found.history],
                **_left_out(self),
            }

        batches = LengthSorted(train, self.optimiser.batch_size, self.seed)
        return Prepared(model, batches, loss, evaluate, finish)


def _have_vector(table: pa.Table, side: str) -> np.ndarray:
    """Return which rows have a vector of one side, bool (rows,); the others' is not a number."""
    scale = f"scale{side}"
    if scale in table.column_names:
        return ~np.isnan(table[scale].to_numpy())
    return ~np.isnan(matrix(table[f"vector{side}"])[:, 0])


def _left_out(training: EncoderTraining) -> Record:
    """Return how many sentences are left out for want of a vector; nothing where all have one."""
    missing, held_back = training.train.unanswered, training.validation.unanswered
    found = {"unanswered": missing, "held_back_unanswered": held_back}
    return found if missing or held_back else {}


def _opened(folders: tuple[Path, Path]) -> tuple[ShardSet, ShardSet]:
    return ShardSet.open(folders[0]), ShardSet.open(folders[1])


def encoder_row(params: Params, name: str, layout: Layout, device: str) -> Row[EncoderTraining]:
    """Return the trainings of one row of ``encoders``, by learning rate."""
    encoder = params.encoders[name]
    rates = params.optimisers[encoder.optimiser].learning_rates

    def spec(_: int, rate: float) -> EncoderTraining:
        return EncoderTraining(params, name, layout, rate, device)

    return Row(name, rates, [encoder.seed], spec)


def check_vectors(training: EncoderTraining) -> None:
    """Check that there is something to train on and to evaluate on, of the width that is wanted.

    :raises DistilleryError: if not.
    """
    for corpus, what in ((training.train, "train on"), (training.validation, "hold back")):
        vectors = corpus.vectors()
        if not len(vectors) and (missing := corpus.unanswered):
            raise DistilleryError(
                f"encoders.{training.name}: none of the {missing:,} sentences to {what} has a "
                "vector in `sentence_vectors.files`. `distill teacher vector-requests` writes "
                "those that need one."
            )
        if not len(vectors):
            raise DistilleryError(
                f"encoders.{training.name}: there are no sentences to {what}. Set `wikipedia` in "
                "params.yaml to a source with more of them, or take the encoder out."
            )
        width, wanted = vectors.shape[1], training.student.sentence_width
        if width != wanted:
            raise DistilleryError(
                f"students.{training.row.student}.width: {wanted}, but the teacher's vectors "
                f"have {width} values. Set it to {width}."
            )


def mean_of(
    vectors: StoredVectors | AnsweredVectors, change: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return the mean of all vectors, each changed first, float64 (width,)."""
    total = np.zeros(vectors.shape[1])
    for start in range(0, len(vectors), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(vectors)))
        total += change(vectors[rows].astype(np.float64)).sum(0)
    return total / len(vectors)


def held_back_loss(
    answers: np.ndarray, targets: StoredVectors | AnsweredVectors, mean: np.ndarray | float
) -> float:
    """Return the mean of ½(1 − cos) between answers and targets less ``mean``."""
    total = 0.0
    for start in range(0, len(targets), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(targets)))
        products = unit(answers[rows].astype(np.float64)) * unit(targets[rows] - mean)
        total += float((1.0 - products.sum(1)).sum() / 2)
    return total / len(targets)
