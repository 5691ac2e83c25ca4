"""The one training loop, for teachers and students alike.

It is deterministic given (data, settings, seed) on one machine, looks at dev every so many steps
and keeps the best weights.  A checkpoint outside DVC's outputs holds everything that the next step
depends on, so a killed training goes on where it was and ends with the same bytes.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from pipeline_lib.base.devices import DTYPES
from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import atomic_path

Batch = Mapping[str, torch.Tensor]
CHECKPOINT_SECONDS = 60.0
"""A kill loses at most about this much training."""


class Batches(Protocol):
    """The training data: which rows go together in an epoch, and their tensors."""

    def epoch(self, number: int) -> Sequence[np.ndarray]:
        """Return the row numbers of each batch of epoch ``number``: the same at every call."""

    def collate(self, rows: np.ndarray) -> Batch:
        """Return the tensors of one batch."""


@dataclass(frozen=True)
class Settings:
    """How a model is optimised; ``max_steps`` ends training whatever the epochs."""

    optimiser: str
    learning_rate: float
    schedule: str
    warmup: float
    epochs: int
    max_steps: int | None
    evaluate_every: int | None
    clip_norm: float | None
    weight_decay: float
    precision: str
    seed: int


@dataclass
class Progress:
    """Where a training stands: what a checkpoint keeps beside the tensors.

    ``history`` has one entry per look at dev: step, epoch (from 1), mean training loss since the
    last look, dev score.
    """

    step: int = 0
    best_score: float = -math.inf
    best_step: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


class Report(Protocol):
    """Where progress is shown; called after every step."""

    def __call__(self, step: int, total: int, loss: float, best: float) -> None:
        """Show that ``step`` of ``total`` is done."""


def fit(
    model: torch.nn.Module,
    batches: Batches,
    loss: Callable[[torch.nn.Module, Batch], torch.Tensor],
    evaluate: Callable[[torch.nn.Module], float],
    settings: Settings,
    checkpoint: Path,
    report: Report | None = None,
) -> Progress:
    """Train ``model`` in place and leave it with the weights that scored best on dev.

    :param loss: (model, batch) to the mean loss, a scalar.
    :param evaluate: model to its dev score, greater is better.
    :param checkpoint: a safetensors file; if it exists, training goes on from it.
    :raises DistilleryError: if the loss stops being a number.
    """
    _make_deterministic(settings.seed)
    per_epoch = len(batches.epoch(0))
    total = min(settings.epochs * per_epoch, settings.max_steps or math.inf)
    look = settings.evaluate_every or per_epoch
    optimiser = make_optimiser(model, settings)
    state = _State(model, optimiser, Progress())
    state.load(checkpoint)
    progress, saved = state.progress, time.monotonic()
    device = next(model.parameters()).device
    model.train()
    for step, rows in _remaining(batches, progress.step, per_epoch, int(total)):
        _set_rate(optimiser, settings, step, int(total))
        value = _step(model, optimiser, loss, _to(batches.collate(rows), device), settings)
        if not math.isfinite(value):
            raise DistilleryError(
                f"the training loss became {value} at step {step + 1}. Lower the learning rate "
                f"({settings.learning_rate}) or set clip_norm."
            )
        progress.step = step + 1
        progress.loss_sum, progress.loss_count = progress.loss_sum + value, progress.loss_count + 1
        if progress.step % look == 0 or progress.step == total:
            _look(model, evaluate, state, progress.step / per_epoch)
        if report:
            report(progress.step, int(total), value, progress.best_score)
        if time.monotonic() - saved > CHECKPOINT_SECONDS or progress.step == total:
            state.save(checkpoint)
            saved = time.monotonic()
    model.load_state_dict(state.best)
    model.eval()
    return progress


def make_optimiser(model: torch.nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """Return the optimiser over the parameters that are trained.

    Adam decays weights apart from the gradient (AdamW), as BERT's does.  AdaDelta has ρ 0.95, the
    value of Tang et al. 2019, section 4.2.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    if settings.optimiser == "adadelta":
        return torch.optim.Adadelta(
            trained, lr=settings.learning_rate, rho=0.95, weight_decay=settings.weight_decay
        )
    return torch.optim.AdamW(
        trained, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )


def rate_factor(schedule: str, warmup: float, step: int, total: int) -> float:
    """Return what the learning rate is multiplied by at ``step`` (from 0) of ``total``.

    It rises linearly over the first ``warmup`` share of the steps, then stays or falls to 0.
    """
    rising = warmup * total
    if step < rising:
        return (step + 1) / (rising + 1)
    return 1.0 if schedule == "constant" else (total - step) / max(1.0, total - rising)


def autocast(device: torch.device, precision: str) -> Any:
    """Return the mixed-precision context: float32 weights, matrix products in ``precision``."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=DTYPES[precision])


@dataclass
class _State:
    """Everything the next step depends on, and the best weights so far."""

    model: torch.nn.Module
    optimiser: torch.optim.Optimizer
    progress: Progress
    best: dict[str, torch.Tensor] = field(default_factory=dict)

    def keep_best(self) -> None:
        self.best = {name: t.detach().clone() for name, t in self.model.state_dict().items()}

    def save(self, path: Path) -> None:
        tensors = {f"model.{n}": t for n, t in self.model.state_dict().items()}
        tensors |= {f"best.{n}": t for n, t in self.best.items()}
        states = self.optimiser.state_dict()["state"]
        tensors |= {f"optimiser.{i}.{n}": t for i, s in states.items() for n, t in s.items()}
        tensors["random.cpu"] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        contiguous = {name: t.detach().contiguous().clone() for name, t in tensors.items()}
        with atomic_path(path) as temporary:
            save_file(contiguous, temporary, {"progress": json.dumps(vars(self.progress))})

    def load(self, path: Path) -> None:
        try:
            with safe_open(path, "pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                self.progress = Progress(**json.loads(file.metadata()["progress"]))
        except FileNotFoundError:
            # None yet, or another process that trained the same has just finished.
            return
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise DistilleryError(
                f"{path}: torn checkpoint ({error}). Delete it and run again: this training starts "
                "over."
            ) from error
        self.model.load_state_dict(_below(tensors, "model."))
        self.best = _below(tensors, "best.")
        _load_optimiser(self.optimiser, _below(tensors, "optimiser."))
        torch.set_rng_state(tensors["random.cpu"])
        if "random.cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["random.cuda"])


def _below(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _load_optimiser(optimiser: torch.optim.Optimizer, flat: dict[str, torch.Tensor]) -> None:
    states: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in flat.items():
        index, key = name.split(".", 1)
        states.setdefault(int(index), {})[key] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": states})


def _make_deterministic(seed: int) -> None:
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Filling memory that is written anyway took a tenth of fine-tuning and a quarter of an LSTM's
    # training.
    torch.utils.deterministic.fill_uninitialized_memory = False


def _remaining(
    batches: Batches, done: int, per_epoch: int, total: int
) -> Iterator[tuple[int, np.ndarray]]:
    for epoch in range(done // per_epoch, math.ceil(total / per_epoch)):
        for index, rows in enumerate(batches.epoch(epoch)):
            step = epoch * per_epoch + index
            if done <= step < total:
                yield step, rows


def _set_rate(optimiser: torch.optim.Optimizer, settings: Settings, step: int, total: int) -> None:
    factor = rate_factor(settings.schedule, settings.warmup, step, total)
    for group in optimiser.param_groups:
        group["lr"] = settings.learning_rate * factor


def _step(
    model: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
    loss: Callable[[torch.nn.Module, Batch], torch.Tensor],
    batch: Batch,
    settings: Settings,
) -> float:
    device = next(model.parameters()).device
    with autocast(device, settings.precision):
        value = loss(model, batch)
    value.backward()
    if settings.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
    optimiser.step()
    optimiser.zero_grad()
    return float(value.detach())


def _look(
    model: torch.nn.Module,
    evaluate: Callable[[torch.nn.Module], float],
    state: _State,
    epoch: float,
) -> None:
    progress = state.progress
    model.eval()
    with torch.inference_mode():
        score = evaluate(model)
    model.train()
    mean = progress.loss_sum / max(1, progress.loss_count)
    progress.history.append(
        {"step": progress.step, "epoch": round(epoch, 4), "loss": mean, "dev": score}
    )
    progress.loss_sum, progress.loss_count = 0.0, 0
    # A score can be no number (a correlation of constants); some weights must be kept all the same.
    if score > progress.best_score or not state.best:
        progress.best_score, progress.best_step = score, progress.step
        state.keep_best()


def _to(batch: Batch, device: torch.device) -> Batch:
    return {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
