"""An optimiser's row made into trainings, one per learning rate; the best on dev is kept."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch

from pipeline_lib.params import Optimiser
from pipeline_lib.training.loop import Batch, Batches, Report, Settings, fit

Model = TypeVar("Model", bound=torch.nn.Module)


def fit_best(
    build: Callable[[], Model],
    batches: Batches,
    loss: Callable[[Model, Batch], torch.Tensor],
    evaluate: Callable[[Model], float],
    optimiser: Optimiser,
    precision: str,
    seed: int,
    checkpoint: Path,
    report: Report,
) -> tuple[Model, dict[str, Any]]:
    """Train a model per learning rate; return the one that is best on dev, and its record.

    :param build: makes the model anew; ``loss`` and ``evaluate`` are those of
        :func:`~pipeline_lib.training.loop.fit`.
    :param checkpoint: a safetensors file, made into one per rate.
    :param report: is told the steps of all rates together.
    """
    best: tuple[float, Model, dict[str, Any]] | None = None
    rates = optimiser.learning_rates
    scores: dict[str, float] = {}
    for number, rate in enumerate(rates):

        def tell(step: int, total: int, value: float, score: float, done: int = number) -> None:
            report(done * total + step, len(rates) * total, value, score)

        torch.manual_seed(seed)
        model = build()
        settings = settings_of(optimiser, rate, precision, seed)
        progress = fit(model, batches, loss, evaluate, settings, _path(checkpoint, rate), tell)
        scores[f"{rate:g}"] = progress.best_score
        if best is None or progress.best_score > best[0]:
            record = {
                "best_dev": progress.best_score,
                "best_step": progress.best_step,
                "selection": "learning rate and look, best on dev",
                "best_dev_by_rate": scores,
                "settings": asdict(settings),
                "history": progress.history,
            }
            best = progress.best_score, model, record
    return best[1], best[2]


def forget_checkpoints(checkpoint: Path, optimiser: Optimiser) -> None:
    """Delete the checkpoints of :func:`fit_best`, once what it returned is kept."""
    for rate in optimiser.learning_rates:
        _path(checkpoint, rate).unlink(missing_ok=True)


def _path(checkpoint: Path, rate: float) -> Path:
    return checkpoint.with_name(f"{checkpoint.stem}-{rate:g}.safetensors")


def settings_of(optimiser: Optimiser, rate: float, precision: str, seed: int) -> Settings:
    """Return the settings of a training at one of an optimiser's rates."""
    return Settings(
        optimiser=optimiser.name,
        learning_rate=rate,
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
