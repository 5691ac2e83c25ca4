"""Fine-tuning the teacher: a list of learning rates, the best epoch of the best rate on dev.

As Tang et al. 2019, section 4: Adam, never on augmented data; no class weights.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from pipeline_lib.base.devices import resolve_precision, resolve_training_precision
from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import link_or_copy
from pipeline_lib.cpu.attention import use_training_attention
from pipeline_lib.cpu.dropout import replace_dropout
from pipeline_lib.params import FineTuning, Task
from pipeline_lib.params import Teacher as TeacherParams
from pipeline_lib.storage.columns import Text, texts
from pipeline_lib.tasks.metrics import agreement, label_array, score
from pipeline_lib.teachers.model import Teacher, load_classifier, load_teacher
from pipeline_lib.training.batches import LengthSorted
from pipeline_lib.training.label_scale import scale_of
from pipeline_lib.training.loop import Batch, Progress, Report, Settings, autocast, fit
from pipeline_lib.training.objectives import label_loss

EVALUATION_TOKENS = 4096
LEAST_ERROR_OF_ANOTHER_UNIT = 2.0
"""In standard deviations of the labels on dev."""
AGREEMENT_ROWS = 2000
"""Training rows on which the finished teacher's own agreement is taken, for the alignment proof."""


@dataclass(frozen=True)
class Data:
    """Prepared rows of one split: texts or pairs; labels (no null), int64, or float32 scores."""

    texts: list[Text]
    labels: np.ndarray

    @classmethod
    def of(cls, table: pa.Table) -> "Data":
        """Take the columns out of a prepared table."""
        return cls(texts(table), label_array(table["label"]))


def finetune(
    base: Path,
    train: Data,
    dev: Data,
    task: Task,
    params: TeacherParams,
    device: torch.device,
    checkpoints: Path,
    progress_of: Callable[[float], AbstractContextManager[Report]],
) -> tuple[Any, Any, dict[str, Any]]:
    """Fine-tune ``base`` once per learning rate and return the best (model, tokenizer, record).

    :param checkpoints: a folder that outlives a kill; cleared by :func:`forget` once all is saved.
    :param progress_of: learning rate to the progress display of its run.
    """
    runs: list[tuple[Progress, float]] = []
    best: tuple[float, Any, Any] | None = None
    for rate in params.finetune.learning_rates:
        torch.manual_seed(params.finetune.seed)
        model, tokenizer = load_classifier(base, task.label_names)
        with progress_of(rate) as report:
            progress = _run(
                model, tokenizer, train, dev, task, params, rate, device, checkpoints, report
            )
        runs.append((progress, rate))
        if best is None or progress.best_score > best[0]:
            best = progress.best_score, model, tokenizer
    score_, model, tokenizer = best
    scale = scale_of(train.labels)
    if scale is not None:
        scale.rescale(output_layer(model))
    return model, tokenizer, _record(runs, task.metrics[0], score_)


def _run(
    model: Any,
    tokenizer: Any,
    train: Data,
    dev: Data,
    task: Task,
    params: TeacherParams,
    rate: float,
    device: torch.device,
    checkpoints: Path,
    report: Report,
) -> Progress:
    precision = resolve_training_precision(params.finetune.precision, device)
    if params.finetune.freeze_embeddings:
        model.get_input_embeddings().requires_grad_(False)
    use_training_attention(model.to(device))
    replace_dropout(model)
    runner = Teacher(model, tokenizer, device, precision, digest="")
    encoded = runner.encode(train.texts, params.max_length)
    scale = scale_of(train.labels)
    labels = train.labels if scale is None else scale.standardise(train.labels)
    sentences = replace(encoded, targets={"labels": labels})
    batches = LengthSorted(sentences, params.finetune.batch_size, params.finetune.seed)

    def loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        return label_loss(runner.forward(batch).float(), batch["labels"])

    def evaluate(model: torch.nn.Module) -> float:
        with autocast(device, precision):
            outputs = runner.predict(dev.texts, params.max_length, EVALUATION_TOKENS)
        return score(task.metrics[0], dev.labels, outputs, task.positive_class)

    path = checkpoints / f"rate-{rate:g}.safetensors"
    return fit(
        model, batches, loss, evaluate, _settings(params.finetune, rate, precision), path, report
    )


def output_layer(model: Any) -> torch.nn.Linear:
    """Return the last layer of a classifier or regressor, which gives its outputs.

    :raises DistilleryError: if it has none: then its outputs cannot be rescaled.
    """
    linear = [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.Linear) and module.out_features == model.config.num_labels
    ]
    if not linear:
        raise DistilleryError(
            f"{type(model).__name__}: no linear output layer, so it cannot learn a regression. "
            "Choose another model in teacher.source."
        )
    return linear[-1]


def _settings(params: FineTuning, rate: float, precision: str) -> Settings:
    return Settings(
        optimiser="adam",
        learning_rate=rate,
        schedule="linear",
        warmup=params.warmup,
        epochs=params.epochs,
        max_steps=None,
        evaluate_every=None,
        clip_norm=params.clip_norm,
        weight_decay=params.weight_decay,
        precision=precision,
        seed=params.seed,
    )


def _record(runs: list[tuple[Progress, float]], metric: str, best: float) -> dict[str, Any]:
    return {
        "metric": metric,
        "best_dev": best,
        "selection": "learning rate and epoch chosen on dev",
        "runs": [
            {
                "learning_rate": rate,
                "best_dev": progress.best_score,
                "best_step": progress.best_step,
                "history": progress.history,
            }
            for progress, rate in runs
        ],
    }


def adopt(
    finished: Path, folder: Path, dev: Data, task: Task, params: TeacherParams, device: torch.device
) -> dict[str, Any]:
    """Take a teacher that was fine-tuned elsewhere into ``folder``; return its record.

    :raises DistilleryError: if it cannot be loaded, or scores in another unit than the labels'.
    """
    for path in sorted(finished.iterdir()):
        link_or_copy(path, folder / path.name)
    precision = resolve_precision(params.finetune.precision, device)
    outputs = load_teacher(folder, device, precision).predict(
        dev.texts, params.max_length, EVALUATION_TOKENS
    )
    if task.is_regression:
        check_unit(finished, dev.labels, outputs[:, 0])
    best = score(task.metrics[0], dev.labels, outputs, task.positive_class)
    return {
        "metric": task.metrics[0],
        "best_dev": best,
        "selection": "fine-tuned elsewhere",
        "runs": [],
    }


def check_unit(finished: Path, labels: np.ndarray, scores: np.ndarray) -> None:
    """Check that a regression's scores are in the unit of the labels, both shape (rows,).

    Correlations would not show it, but students would be trained to both.  A constant guess errs by
    the labels' standard deviation; and scores that follow the labels vary as these do.

    :raises DistilleryError: if they err by more than twice that deviation, or vary less than a
        third as much as their correlation with the labels implies.
    """
    spread, own = float(labels.std()), float(scores.std())
    error = float(np.sqrt(np.mean((scores - labels) ** 2)))
    explained = score("pearson", labels, scores[:, None]) * spread
    if error <= LEAST_ERROR_OF_ANOTHER_UNIT * spread and 3 * own >= explained:
        return
    raise DistilleryError(
        f"{finished}: the teacher's scores on dev (mean {scores.mean():.3g}, standard deviation "
        f"{own:.3g}) are in another unit than the labels (mean {labels.mean():.3g}, standard "
        f"deviation {spread:.3g}): they err by {error:.3g}. Rescale the task's label column to "
        "the teacher's unit, or set teacher.checkpoint to null."
    )


def training_agreement(teacher: Teacher, train: Data, max_length: int) -> float:
    """Return how far the finished teacher agrees with the first labels of its training set.

    The alignment proof compares the stored outputs with it: rows that slipped would agree with
    their labels by chance only.
    """
    outputs = teacher.predict(train.texts[:AGREEMENT_ROWS], max_length, EVALUATION_TOKENS)
    return agreement(train.labels[:AGREEMENT_ROWS], outputs)


def forget(checkpoints: Path) -> None:
    """Delete a finished training's checkpoints, but not what another process is writing."""
    for path in checkpoints.glob("rate-*.safetensors"):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        checkpoints.rmdir()
