"""Distilling without a task: an encoder trained to the base teacher's sentence vectors.

Wu et al. 2020, sections 3.1 and 3.2 (SRA).  The vectors of BERT-like models share a large common
direction, so that one constant vector reaches a low loss already: that loss is reported beside the
encoder's, and ``centre`` takes the common part off the targets.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from tokenizers import Tokenizer
from torch import nn

from pipeline_lib.base.devices import resolve_device, resolve_student_precision
from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import clear_folder, read_json, sha256_folder, sha256_json, write_json
from pipeline_lib.cpu.fast_tokenizer import WordNumbers
from pipeline_lib.engine.local import Tell
from pipeline_lib.params import Encoder, Params
from pipeline_lib.storage.columns import column_suffixes
from pipeline_lib.storage.fingerprint import training_code
from pipeline_lib.storage.shards import ShardSet
from pipeline_lib.storage.vectors import StoredVectors, unit, vector_tables
from pipeline_lib.students.sentence_encoder import build_encoder, encode_sentences, save_encoder
from pipeline_lib.students.vocabulary import build_vocabulary, count_normalised, select_words
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.text.words import MASK, split_words
from pipeline_lib.training.batches import LengthSorted
from pipeline_lib.training.loop import Batch, Report
from pipeline_lib.training.objectives import representation_loss
from pipeline_lib.training.runs import Trained, train_distinct
from pipeline_lib.training.search import fit_best, forget_checkpoints

_CHUNK = 8192


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
        numbered = WordNumbers(tokenizer).number(texts, max_words)
        return replace(numbered, targets={"vectors": self.vectors()})

    def vectors(self) -> StoredVectors:
        """Return the sentences' vectors, in the order of :meth:`read`."""
        return StoredVectors([(vectors, side) for _, vectors, side in self._parts()])

    def _parts(self) -> Iterator[tuple[pa.Table, pa.Table, str]]:
        for inputs, outputs, limit in self.sets:
            left = limit
            for rows, vectors in vector_tables(inputs, outputs):
                rows, vectors = rows.slice(0, left), vectors.slice(0, left)
                left = None if left is None else left - rows.num_rows
                for side in column_suffixes(rows):
                    yield rows, vectors, side


class Pretraining:
    """One row of ``encoders``, and the folders that it reads.

    :param data: the folder of all artifacts.
    """

    def __init__(self, params: Params, name: str, data: Path) -> None:
        self.row: Encoder = params.encoders[name]
        self.name, self.params, self.data = name, params, data
        self.student = params.students[self.row.student]
        self.optimiser = params.optimisers[self.row.optimiser]
        self.device = resolve_device(params.device)
        self.precision = resolve_student_precision(
            self.optimiser.precision, self.device, self.student.architecture
        )

    @property
    def train(self) -> Corpus:
        """The sentences trained on: Wikipedia's, and those of the tasks that join it."""
        names = [f"tasks/{task}/{recipe}" for task, recipe in self.row.tasks.items() if recipe]
        joined = [(self._inputs(name), self._outputs(name), None) for name in names]
        wikipedia = self._inputs(WIKIPEDIA), self._outputs(WIKIPEDIA), self.row.wikipedia
        return Corpus([wikipedia, *joined])

    @property
    def validation(self) -> Corpus:
        """Wikipedia's held-back articles."""
        return Corpus([(self._inputs(HELD_BACK), self._outputs(HELD_BACK), None)])

    def _inputs(self, name: str) -> ShardSet:
        return ShardSet.open(self.data / name.replace("tasks/", "transfer/"))

    def _outputs(self, name: str) -> ShardSet:
        return ShardSet.open(self.data / "vectors" / name)

    @property
    def trained(self) -> Trained:
        """Where the finished encoder is kept: found by what it is made of, not by names."""
        words = [ShardSet.open(self._task(t)).manifest.digest for t in self.row.tasks]
        row = self.row.model_dump(exclude={"student", "optimiser", "wikipedia", "tasks"})
        made_from = [
            *(row, self.student.model_dump(), self.optimiser.model_dump()),
            *(self.params.vocabulary.model_dump(), words, self.train.digest),
            *(self.validation.digest, sha256_folder(self.base), sha256_folder(self.vectors)),
            *(self.device.type, self.precision, training_code(__name__)),
        ]
        return Trained("encoders", sha256_json(made_from))

    @property
    def planned_rows(self) -> int:
        """How many sentences the training reads."""
        steps = self.optimiser.steps(len(self.train.vectors()))
        return steps * self.optimiser.batch_size * len(self.optimiser.learning_rates)

    @property
    def base(self) -> Path:
        """The base teacher."""
        return self.data / "raw/teacher/base"

    @property
    def vectors(self) -> Path:
        """Where fetch_vectors put its file."""
        return self.data / "raw/vectors"

    def _task(self, task: str) -> Path:
        return self.data / "tasks" / task / "train"

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
        inputs = self._inputs(WIKIPEDIA)
        left = self.row.wikipedia
        for rows in inputs.tables():
            rows = rows.slice(0, left)
            left = None if left is None else left - rows.num_rows
            for text in rows["text"].to_pylist():
                yield from (word for word in split_words(text)[0] if word != MASK)


WIKIPEDIA, HELD_BACK = "wikipedia/train", "wikipedia/validation"


def pretrain_encoders(
    runs: Sequence[Pretraining], target: Path, workers: int, hear: Callable[[int, Any], None]
) -> dict[str, dict[str, Any]]:
    """Train the encoders into ``target/<name>``; return each one's record.

    :param workers: processes; their number changes no byte.
    :param hear: is called with a run's position and (step, steps, loss, least loss held back).
    """
    clear_folder(target)
    records = {}
    on_cpu = all(run.device.type == "cpu" for run in runs)
    for number, record in train_distinct(pretrain_or_find, runs, workers, on_cpu, hear):
        runs[number].trained.place(target / runs[number].name)
        records[runs[number].name] = record
    return records


def pretrain_or_find(run: Pretraining, tell: Tell) -> dict[str, Any]:
    """Return a finished encoder's record; train it if it is missing or damaged.

    :raises DistilleryError: if there are no sentences, or the student's width is not the teacher's.
    """
    trained = run.trained
    if not trained.is_whole():
        check_vectors(run)
        tokenizer, vectors = build_vocabulary(
            run.words(), run.params.vocabulary, run.base, run.vectors
        )
        limit = run.student.max_words
        train, held_back = (c.read(tokenizer, limit) for c in (run.train, run.validation))

        def report(step: int, total: int, loss: float, best: float) -> None:
            tell((step, total, loss, -best))

        model, record = pretrain(run, vectors, train, held_back, trained.checkpoint, report)
        with trained.writing() as folder:
            save_encoder(folder, model, tokenizer, run.student.model_dump())
            write_json(folder / "training.json", record)
        forget_checkpoints(trained.checkpoint, run.optimiser)
    return read_json(trained.folder / "training.json")


def check_vectors(run: Pretraining) -> None:
    """Check that there is something to train on and to look at, of the width that is wanted.

    :raises DistilleryError: if not.
    """
    for corpus, what in ((run.train, "train on"), (run.validation, "hold back")):
        vectors = corpus.vectors()
        if not len(vectors):
            raise DistilleryError(
                f"encoders.{run.name}: there are no sentences to {what}. Set `wikipedia` in "
                "params.yaml to a source with more of them, or take the encoder out."
            )
        width = vectors.shape[1]
        if width != run.student.width:
            raise DistilleryError(
                f"students.{run.row.student}.width: {run.student.width}, but the teacher's vectors "
                f"have {width} values. Set it to {width}."
            )


def pretrain(
    run: Pretraining,
    vectors: np.ndarray,
    train: Sentences,
    held_back: Sentences,
    checkpoint: Path,
    report: Report,
) -> tuple[nn.Module, dict[str, Any]]:
    """Train one encoder; return it with its record, losses on held-back sentences among it.

    :param vectors: the vocabulary's embedding table, float32 (words, width).
    """
    targets = train.targets["vectors"]
    mean = mean_of(targets, lambda found: found) if run.row.centre else 0.0
    constant = mean_of(targets, lambda found: unit(found - mean))
    centre = torch.as_tensor(mean, dtype=torch.float32, device=run.device)

    def loss(model: nn.Module, batch: Batch) -> torch.Tensor:
        answers = model(batch["ids"], batch["lengths"]).float()
        return representation_loss(answers, batch["vectors"] - centre)

    def evaluate(model: nn.Module) -> float:
        answers = encode_sentences(model, held_back, run.device)
        return -held_back_loss(answers, held_back.targets["vectors"], mean)

    model, record = fit_best(
        lambda: build_encoder(vectors, run.student.model_dump()).to(run.device),
        LengthSorted(train, run.optimiser.batch_size, run.row.seed),
        *(loss, evaluate, run.optimiser, run.precision, run.row.seed, checkpoint, report),
    )
    rows = np.broadcast_to(constant, (len(held_back), len(constant)))
    return model, {
        "sentences": len(train),
        "held_back_sentences": len(held_back),
        "words": len(vectors),
        "centred": run.row.centre,
        "loss": -record.pop("best_dev"),
        "constant_loss": held_back_loss(rows, held_back.targets["vectors"], mean),
        **record,
        "history": [{**look, "dev": -look["dev"]} for look in record["history"]],
        "best_dev_by_rate": {rate: -s for rate, s in record["best_dev_by_rate"].items()},
    }


def mean_of(vectors: StoredVectors, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the mean of all vectors, each changed first, float64 (width,)."""
    total = np.zeros(vectors.shape[1])
    for start in range(0, len(vectors), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(vectors)))
        total += change(vectors[rows].astype(np.float64)).sum(0)
    return total / len(vectors)


def held_back_loss(answers: np.ndarray, targets: StoredVectors, mean: np.ndarray | float) -> float:
    """Return the mean of ½(1 − cos) between answers and targets less ``mean``."""
    total = 0.0
    for start in range(0, len(targets), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(targets)))
        products = unit(answers[rows].astype(np.float64)) * unit(targets[rows] - mean)
        total += float((1.0 - products.sum(1)).sum() / 2)
    return total / len(targets)
