"""Training one student from a plan: the method's row made into a run of the training loop."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pipeline_lib.batching import LengthSorted, Sentences
from pipeline_lib.evaluation.metrics import score
from pipeline_lib.objectives import objective_loss
from pipeline_lib.params import Optimiser
from pipeline_lib.plans import Plan
from pipeline_lib.students.loading import build_student, predict_sentences
from pipeline_lib.students.model import StudentForSequenceClassification
from pipeline_lib.training import Batch, Report, Settings, fit


def train_student(
    plan: Plan,
    train: Sentences,
    dev: Sentences,
    vectors: np.ndarray,
    seed: int,
    device: torch.device,
    checkpoint: Path,
    report: Report,
) -> tuple[StudentForSequenceClassification, dict[str, Any]]:
    """Train one student and return it with the record of its training.

    :param vectors: the vocabulary's embedding table, float32 (words, width).
    :param checkpoint: where to go on from after a kill.
    """
    torch.manual_seed(seed)
    start = vectors if plan.start == "vectors" else None
    model = build_student(plan.student.model_dump(), plan.labels, start, vectors.shape).to(device)
    batches = LengthSorted(train, plan.optimiser.batch_size, seed, equal=True)
    labels = dev.targets["labels"]

    def loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        logits = model(batch["ids"], lengths=batch["lengths"]).logits
        return objective_loss(plan.objective, logits, batch.get("logits"), batch.get("labels"))

    def evaluate(model: torch.nn.Module) -> float:
        predictions = predict_sentences(model, dev, device).argmax(1)
        return score(plan.metric, labels, predictions, len(plan.labels))

    settings = _settings(plan.optimiser, seed)
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


def _settings(optimiser: Optimiser, seed: int) -> Settings:
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
        precision="float32",
        seed=seed,
    )
