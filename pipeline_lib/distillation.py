"""Training students from a plan: the method's row made into training runs, one per seed.

A finished student is kept outside DVC's outputs under the digest of all that determines it.  So a
new seed trains one student, and a killed stage goes on with the seeds, and the steps, that are
missing.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pipeline_lib.batching import LengthSorted, Sentences
from pipeline_lib.devices import resolve_training_precision
from pipeline_lib.engine import Tell, run_jobs
from pipeline_lib.evaluation.metrics import score
from pipeline_lib.files import (
    clear_folder,
    link_or_copy,
    read_json,
    sha256_folder,
    sha256_json,
    write_json,
)
from pipeline_lib.objectives import objective_loss
from pipeline_lib.params import Optimiser
from pipeline_lib.plans import Plan
from pipeline_lib.shards import ShardSet
from pipeline_lib.store import state_folder
from pipeline_lib.students.loading import build_student, predict_sentences, save_student
from pipeline_lib.students.network import Form, StudentNetwork
from pipeline_lib.students.vocabulary import load_vocabulary
from pipeline_lib.training import Batch, Report, Settings, fit
from pipeline_lib.training_data import dev_sentences, training_sentences

CODE_VERSION = 3
"""Bump when the same inputs would give another student."""

Hear = Callable[[int, tuple[int, int, float, float]], None]
"""Called with a seed's position and (step, steps, loss, best dev score)."""


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
        """SHA-256 over the plan, the vocabulary, the dev set, the seed and the code."""
        dev = ShardSet.open(self.dev).manifest.digest
        settings = [self.plan.model_dump(), sha256_folder(self.vocabulary), dev, self.seed]
        return sha256_json([*settings, self.device.split(":")[0], self.precision, CODE_VERSION])

    @property
    def precision(self) -> str:
        """The number format of the matrix products in training."""
        return resolve_training_precision(self.plan.optimiser.precision, torch.device(self.device))


def train_seeds(
    jobs: Sequence[TrainingJob], target: Path, workers: int, hear: Hear
) -> dict[int, dict[str, Any]]:
    """Train the jobs' students into ``target/<seed>``; return each seed's record.

    :param workers: processes; their number changes no byte.
    """
    clear_folder(target)
    on_cpu = jobs[0].device == "cpu"
    records = {}
    for number, (folder, record) in run_jobs(train_or_find, jobs, workers, on_cpu, hear):
        for path in sorted(folder.iterdir()):
            link_or_copy(path, target / str(jobs[number].seed) / path.name)
        records[jobs[number].seed] = record
    return records


def train_or_find(job: TrainingJob, tell: Tell) -> tuple[Path, dict[str, Any]]:
    """Return a finished student's folder and record; train it if it is missing or damaged."""
    finished = state_folder() / "students" / job.key
    seal = finished.with_suffix(".json")
    if not _is_whole(finished, seal):
        checkpoint = state_folder() / "checkpoints" / f"student-{job.key}.safetensors"
        tokenizer, vectors = load_vocabulary(job.vocabulary)
        outputs = job.plan.outputs.open() if job.plan.outputs else None
        limit = job.plan.student.max_words
        train = training_sentences(job.plan.inputs.open(), outputs, tokenizer, limit)
        dev = dev_sentences(ShardSet.open(job.dev), tokenizer, limit)

        def report(step: int, total: int, loss: float, best: float) -> None:
            tell((step, total, loss, best))

        model, record = train_student(job, train, dev, vectors, checkpoint, report)
        clear_folder(finished)
        save_student(finished, model, tokenizer)
        write_json(finished / "training.json", record)
        # Written last: a student without a seal was interrupted, one that differs was damaged.
        write_json(seal, {"sha256": sha256_folder(finished)})
        checkpoint.unlink(missing_ok=True)
    return finished, read_json(finished / "training.json")


def _is_whole(finished: Path, seal: Path) -> bool:
    if not seal.exists():
        return False
    return read_json(seal).get("sha256") == sha256_folder(finished)


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
    torch.manual_seed(job.seed)
    start = vectors if plan.start == "vectors" else None
    form = Form(*vectors.shape, plan.student.model_dump(), plan.pair, plan.labels)
    model = build_student(form, start).to(device)
    batches = LengthSorted(train, plan.optimiser.batch_size, job.seed)

    def loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        logits = model.outputs(batch)
        return objective_loss(plan.objective, logits, batch.get("logits"), batch.get("labels"))

    def evaluate(model: torch.nn.Module) -> float:
        return score(plan.metric, dev.targets["labels"], predict_sentences(model, dev, device))

    settings = _settings(plan.optimiser, job.precision, job.seed)
    progress = fit(model, batches, loss, evaluate, settings, checkpoint, report)
    record = {
        "rows": len(train),
        "best_dev": progress.best_score,
        "best_step": progress.best_step,
        "selection": "best look at dev",
        "settings": asdict(settings),
        "history": progress.history,
    }
    return model, record


def _settings(optimiser: Optimiser, precision: str, seed: int) -> Settings:
    return Settings(
        optimiser=optimiser.name,
        learning_rate=optimiser.learning_rate,
        schedule=optimiser.schedule,
        warmup=optimiser.warmup,
        epochs=optimiser.epochs,
        max_steps=optimiser.max_steps,
        evaluate_every=optimiser.evaluate_every,
        clip_norm=optimiser.clip_norm,
        weight_decay=0.0,
        precision=precision,
        seed=seed,
    )
