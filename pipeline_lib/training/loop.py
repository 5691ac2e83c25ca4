"""The training loop, shared by teachers and students.

It is deterministic given (data, settings, seed) on one machine, evaluates on dev every few steps and keeps the best
weights, or the last ones.  If killed, it resumes from its checkpoint, which is kept outside DVC's outputs, and
produces the same bytes.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from pipeline_lib.base.devices import DTYPES
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.shards.training_records import Settings
from pipeline_lib.text.ragged import to_device
from pipeline_lib.training.checkpoint import Progress, State
from pipeline_lib.training.optimisers import make_optimiser, set_rate

Batch = Mapping[str, Any]
"""Tensors by name; with several tasks, also the name of the batch's task, under ``task``."""
CHECKPOINT_SECONDS = 60.0
"""If killed, a run loses at most about this much training."""
SYNC_STEPS = 16
"""On an accelerator, the losses of this many steps are read together."""


class Batches(Protocol):
    """The training data: each epoch's batches, and their tensors."""

    def epoch(self, number: int) -> Sequence[np.ndarray]:
        """Return the row numbers of each batch of epoch ``number``, the same on every call."""

    def collate(self, rows: np.ndarray) -> Batch:
        """Return the tensors of one batch."""


@dataclass(frozen=True)
class DevScore:
    """How a model does on dev; higher is better, but for the loss of dev's labels, if evaluations are chosen by it."""

    score: float
    loss: float | None = None

    @property
    def merit(self) -> float:
        """What evaluations are compared by, higher is better."""
        return self.score if self.loss is None else -self.loss

    @property
    def fields(self) -> dict[str, Any]:
        """What the history says of it."""
        return {"dev": self.score} | ({} if self.loss is None else {"dev_loss": self.loss})


@dataclass(frozen=True)
class ScoresByTask:
    """How a model of several tasks does on their dev sets, of so many rows, in their order."""

    each: list[DevScore]
    rows: list[int]

    @property
    def mean(self) -> DevScore:
        """The means, weighted by rows: a score on few of them is mostly chance."""
        columns = zip(*(one.fields.values() for one in self.each), strict=True)
        return DevScore(*(float(np.average(column, weights=self.rows)) for column in columns))

    @property
    def fields(self) -> dict[str, Any]:
        """What the history says of it: the means, and each task's."""
        names = self.mean.fields
        by_task = {f"{name}_by_task": [one.fields[name] for one in self.each] for name in names}
        return names | by_task


Score = float | DevScore | ScoresByTask
"""A model's score on dev, higher is better; with several tasks, their mean counts."""


Report = Callable[[int, int, float, float], None]
"""Called after every step: with it, how many there are, its loss, and the best merit on dev so far."""


LossOf = Callable[[torch.nn.Module, Batch], torch.Tensor]
"""Maps a model and a batch to the mean loss, a scalar."""
Evaluate = Callable[[torch.nn.Module], Score]
"""Maps a model to its score on dev."""


def fit(
    model: torch.nn.Module,
    batches: Batches,
    loss: LossOf,
    evaluate: Evaluate,
    settings: Settings,
    checkpoint: Path,
    report: Report | None = None,
) -> Progress:
    """Train ``model`` in place and leave it with the weights that were best on dev, or the last ones.

    :param checkpoint: a safetensors file; if it exists, training resumes from it.
    """
    _make_deterministic(settings.seed)
    per_epoch = len(batches.epoch(0))
    total = int(min(settings.epochs * per_epoch, settings.max_steps or math.inf))
    # If the last step is kept, the evaluations before it choose nothing.
    every = total if settings.select == "last" else settings.evaluate_every or per_epoch
    optimiser = make_optimiser(model, settings)
    state = State(model, optimiser, Progress())
    state.load(checkpoint)
    progress, saved = state.progress, time.monotonic()
    device = next(model.parameters()).device
    losses = Losses(progress, settings, 1 if device.type == "cpu" else SYNC_STEPS)
    model.train()
    for step, rows in _remaining(batches, progress.step, per_epoch, total):
        set_rate(optimiser, settings, step, total)
        batch = to_device(batches.collate(rows), device)
        losses.add(_step(model, optimiser, loss, batch, settings))
        progress.step = step + 1
        if progress.step % every == 0 or progress.step == total:
            losses.read()
            _evaluate(model, evaluate, state, progress.step / per_epoch)
        if report:
            report(progress.step, total, losses.last, progress.best_merit)
        if time.monotonic() - saved > CHECKPOINT_SECONDS or progress.step == total:
            losses.read()
            state.save(checkpoint)
            saved = time.monotonic()
    model.load_state_dict(state.best)
    model.eval()
    return progress


class Losses:
    """The losses since the last evaluation, read from the device several at a time.

    Reading one waits for the device, which could otherwise be given the next step already.

    :param every: how many steps' losses to read at a time.
    """

    def __init__(self, progress: Progress, settings: Settings, every: int) -> None:
        self.last = math.nan
        self._progress, self._settings, self._every = progress, settings, every
        self._unread: list[torch.Tensor] = []

    def add(self, value: torch.Tensor) -> None:
        """Add the loss of one more step."""
        self._unread.append(value)
        if len(self._unread) >= self._every:
            self.read(upto=self._progress.step + 1)

    def read(self, upto: int | None = None) -> None:
        """Read the unread losses; ``upto`` is the step of the last, by default the current step."""
        first = (self._progress.step if upto is None else upto) - len(self._unread) + 1
        for step, value in enumerate(map(float, self._unread), first):
            if not math.isfinite(value):
                raise PotstillError(
                    f"the training loss became {value} at step {step}. Lower the learning rate "
                    f"({self._settings.learning_rate}) or set clip_norm."
                )
            self._progress.loss_sum += value
            self._progress.loss_count += 1
            self.last = value
        self._unread = []


def autocast(device: torch.device, precision: str) -> Any:
    """Return the mixed-precision context: float32 weights, matrix products in ``precision``."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=DTYPES[precision])


def _make_deterministic(seed: int) -> None:
    torch.manual_seed(seed)
    # As torch.use_deterministic_algorithms does, which also imports torch's compiler: seconds in each process.
    torch.set_deterministic_debug_mode("warn")
    # Filling memory that is overwritten anyway took a tenth of fine-tuning time, and a quarter of
    # an LSTM's training time.
    torch.utils.deterministic.fill_uninitialized_memory = False


def _remaining(batches: Batches, done: int, per_epoch: int, total: int) -> Iterator[tuple[int, np.ndarray]]:
    for epoch in range(done // per_epoch, math.ceil(total / per_epoch)):
        for index, rows in enumerate(batches.epoch(epoch)):
            step = epoch * per_epoch + index
            if done <= step < total:
                yield step, rows


def _step(
    model: torch.nn.Module, optimiser: torch.optim.Optimizer, loss: LossOf, batch: Batch, settings: Settings
) -> torch.Tensor:
    device = next(model.parameters()).device
    with autocast(device, settings.precision):
        value = loss(model, batch)
    value.backward()
    if settings.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
    optimiser.step()
    optimiser.zero_grad()
    return value.detach()


def _evaluate(model: torch.nn.Module, evaluate: Evaluate, state: State, epoch: float) -> None:
    progress = state.progress
    model.eval()
    with torch.inference_mode():
        result = evaluate(model)
    model.train()
    scored = DevScore(result) if isinstance(result, float) else result
    mean = progress.loss_sum / max(1, progress.loss_count)
    entry = {"step": progress.step, "epoch": round(epoch, 4), "loss": mean}
    progress.history.append(entry | scored.fields)
    progress.loss_sum, progress.loss_count = 0.0, 0
    merit = (scored.mean if isinstance(scored, ScoresByTask) else scored).merit
    # A score can be NaN, if outputs are, but some weights must be kept even so.
    if merit > progress.best_merit or math.isnan(progress.best_merit) or not state.best:
        progress.best_merit, progress.best_step = merit, progress.step
        state.keep_best()
