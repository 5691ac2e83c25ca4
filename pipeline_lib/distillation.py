"""Training students from plans: a task's rows made into training runs, one per row and seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from pipeline_lib.batching import LengthSorted, Sentences
from pipeline_lib.choosing import fit_best, forget_checkpoints
from pipeline_lib.devices import resolve_training_precision
from pipeline_lib.engine import Tell
from pipeline_lib.evaluation.metrics import score
from pipeline_lib.files import clear_folder, read_json, sha256_folder, sha256_json, write_json
from pipeline_lib.objectives import objective_loss
from pipeline_lib.plans import Plan
from pipeline_lib.shards import ShardSet, read_manifest
from pipeline_lib.students.encoding import encoder_weights, encoder_words
from pipeline_lib.students.loading import build_student, predict_sentences, save_student
from pipeline_lib.students.network import Form, StudentNetwork
from pipeline_lib.students.vocabulary import load_vocabulary
from pipeline_lib.trained import Trained, train_distinct
from pipeline_lib.training import Batch, Report
from pipeline_lib.training_data import dev_sentences, training_sentences

CODE_VERSION = 5
"""Bump when the same inputs would give another student."""

Hear = Callable[[int, tuple[int, int, float, float]], None]
"""Called with a job's position and (step, steps, loss, best dev score)."""


@dataclass(frozen=True)
class TrainingJob:
    """One student to train: everything that determines it."""

    plan: Plan
    vocabulary: Path
    dev: Path
    seed: int
    device: str

    @property
    def key(self) -> str:
        """SHA-256 over the plan, the vocabulary, the dev set, the seed and the code.

        Names of task and row, and folders, do not count: what they hold does.
        """
        plan, place = self.plan, {"folder", "iterations"}
        names = {"task": True, "method": True, "inputs": place, "outputs": place}
        settings = plan.model_dump(exclude=names | {"encoder": {"folder"}})
        if plan.encoder is not None:
            settings["start"] = "encoder"
        dev = ShardSet.open(self.dev).manifest.digest
        words = None if plan.encoder else sha256_folder(self.vocabulary)
        device = self.device.split(":")[0]
        return sha256_json([settings, words, dev, self.seed, device, self.precision, CODE_VERSION])

    @property
    def trained(self) -> Trained:
        """Where the finished student is kept."""
        return Trained("students", self.key)

    @property
    def planned_rows(self) -> int:
        """About how many rows the training reads."""
        return planned_steps(self.plan) * self.plan.optimiser.batch_size

    @property
    def precision(self) -> str:
        """The number format of the matrix products in training."""
        return resolve_training_precision(self.plan.optimiser.precision, torch.device(self.device))


def planned_steps(plan: Plan) -> int:
    """Return about how many steps a plan takes; duplicates in its transfer set make it fewer."""
    rows = read_manifest(Path(plan.inputs.folder)).upto(plan.inputs.iterations).rows
    return plan.optimiser.steps(rows)


def train_students(
    jobs: Sequence[TrainingJob],
    target: Path,
    workers: int,
    hear: Hear,
    done: Callable[[int], None],
) -> dict[tuple[str, int], dict[str, Any]]:
    """Train the jobs' students into ``target/<method>/<seed>``; return each one's record.

    :param workers: processes; their number changes no byte.
    :param done: is told a job's position once its student is there, trained or found.
    """
    clear_folder(target)
    on_cpu = all(job.device == "cpu" for job in jobs)
    records = {}
    for number, record in train_distinct(train_or_find, jobs, workers, on_cpu, hear):
        job = jobs[number]
        job.trained.place(target / job.plan.method / str(job.seed))
        records[job.plan.method, job.seed] = record
        done(number)
    return records


def train_or_find(job: TrainingJob, tell: Tell) -> dict[str, Any]:
    """Return a finished student's record; train it if it is missing or damaged."""
    trained = job.trained
    if not trained.is_whole():
        tokenizer, vectors = load_words(job)
        outputs = job.plan.outputs.open() if job.plan.outputs else None
        limit = job.plan.student.max_words
        train = training_sentences(job.plan.inputs.open(), outputs, tokenizer, limit)
        dev = dev_sentences(ShardSet.open(job.dev), tokenizer, limit)

        def report(step: int, total: int, loss: float, best: float) -> None:
            tell((step, total, loss, best))

        model, record = train_student(job, train, dev, vectors, trained.checkpoint, report)
        with trained.writing() as folder:
            save_student(folder, model, tokenizer)
            write_json(folder / "training.json", record)
        forget_checkpoints(trained.checkpoint, job.plan.optimiser)
    return read_json(trained.folder / "training.json")


def load_words(job: TrainingJob) -> tuple[Tokenizer, np.ndarray]:
    """Return the tokenizer and the word vectors that the student starts with."""
    if job.plan.encoder is not None:
        return encoder_words(job.plan.encoder.open())
    return load_vocabulary(job.vocabulary)


def train_student(
    job: TrainingJob,
    train: Sentences,
    dev: Sentences,
    vectors: np.ndarray,
    checkpoint: Path,
    report: Report,
) -> tuple[StudentNetwork, dict[str, Any]]:
    """Train one student and return it with the record of its training.

    :param vectors: the vocabulary's embedding table, float32 (words, width).
    :param checkpoint: where to go on from after a kill.
    """
    plan, device = job.plan, torch.device(job.device)
    form = Form(*vectors.shape, plan.student.model_dump(), plan.pair, plan.labels)
    batches = LengthSorted(train, plan.optimiser.batch_size, job.seed)

    def build() -> StudentNetwork:
        model = build_student(form, vectors if plan.start == "vectors" else None)
        if plan.encoder is not None:
            model.encoder.load_state_dict(encoder_weights(plan.encoder.open()))
        return model.to(device)

    def loss(model: StudentNetwork, batch: Batch) -> torch.Tensor:
        logits = model.outputs(batch)
        return objective_loss(plan.objective, logits, batch.get("logits"), batch.get("labels"))

    def evaluate(model: StudentNetwork) -> float:
        return score(plan.metric, dev.targets["labels"], predict_sentences(model, dev, device))

    model, record = fit_best(
        *(build, batches, loss, evaluate),
        *(plan.optimiser, job.precision, job.seed, checkpoint, report),
    )
    return model, {"rows": len(train), **record}
