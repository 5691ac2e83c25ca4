"""The training loop: rates, best weights, and resuming that ends with the same bytes."""

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.training import loop as training
from pipeline_lib.training.checkpoint import generator_states, set_generators
from pipeline_lib.training.loop import Batch, DevScore, Progress, ScoresByTask, Settings, fit
from pipeline_lib.training.optimisers import make_optimiser
from tests.kit.made_up import made_up_training

STEPS_PER_EPOCH, EPOCHS = 4, 3


class Toy:
    """Sixteen points on a plane, in batches of four, shuffled by the epoch."""

    def __init__(self) -> None:
        generator = np.random.default_rng(0)
        self.x = torch.tensor(generator.normal(size=(16, 3)), dtype=torch.float32)
        self.y = self.x @ torch.tensor([1.0, -2.0, 0.5])

    def epoch(self, number: int) -> Sequence[np.ndarray]:
        order = np.random.default_rng([7, number]).permutation(16)
        return np.split(order, STEPS_PER_EPOCH)

    def collate(self, rows: np.ndarray) -> Batch:
        return {"x": self.x[rows], "y": self.y[rows]}


def make_model() -> torch.nn.Module:
    torch.manual_seed(5)
    # Dropout, so that a resumed training also needs the random state.
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))


def loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    return (model(batch["x"]).squeeze(-1) - batch["y"]).pow(2).mean()


def evaluate(model: torch.nn.Module) -> float:
    assert not model.training and not torch.is_grad_enabled()
    toy = Toy()
    return -loss(model, {"x": toy.x, "y": toy.y}).item()


def make_settings(**changes: Any) -> Settings:
    values = {"learning_rate": 0.05, "warmup": 0.2, "batch_size": 8, "epochs": EPOCHS, "evaluate_every": 3}
    values |= {"weight_decay": 0.01, "seed": 11}
    return Settings(**made_up_training()["settings"] | values | changes)


def run(path: Path, **named: Any) -> tuple[dict[str, torch.Tensor], Progress]:
    model = make_model()
    arguments = {"loss": loss, "evaluate": evaluate, "settings": make_settings()} | named
    progress = fit(model, Toy(), checkpoint=path, **arguments)
    return model.state_dict(), progress


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


class KilledError(Exception):
    """Stands for a kill."""


def kill_at(step: int, where: str) -> dict[str, Callable[..., Any]]:
    """Return the callback of a training that dies in ``where`` at its ``step``-th call."""
    usual = {"loss": loss, "evaluate": evaluate, "report": lambda *_: None}[where]
    calls = itertools.count(1)

    def dying(*arguments: Any) -> Any:
        if next(calls) == step:
            raise KilledError
        return usual(*arguments)

    return {where: dying}


@pytest.mark.parametrize(
    ("optimiser", "seconds", "where", "step"),
    [
        *(("adam", -1.0, "loss", step) for step in (1, 2, 4, 5, 9, 12)),
        *(("adam", -1.0, "report", step) for step in (1, 3, 4, 8, 12)),
        *(("adam", -1.0, "evaluate", step) for step in (1, 2, 4)),
        *(("adadelta", -1.0, where, 4) for where in ("loss", "report", "evaluate")),
        *(("adam", 1e9, where, 4) for where in ("loss", "report", "evaluate")),
    ],
)
def test_resumed_training_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, step: int, seconds: float, optimiser: str
) -> None:
    # Below 0 every step leaves a checkpoint, 1e9 none but the last: then all starts over.
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", seconds)
    settings = make_settings(optimiser=optimiser, learning_rate=1.0 if optimiser == "adadelta" else 0.05)
    expected, history = run(tmp_path / "whole", settings=settings)
    with pytest.raises(KilledError):
        run(tmp_path / "killed", **({"settings": settings} | kill_at(step, where)))
    found, progress = run(tmp_path / "killed", settings=settings)
    assert same(found, expected)
    assert progress == history and len(history.history) == 4


def test_two_kills_and_a_finished_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", -1.0)
    expected, history = run(tmp_path / "whole")
    for _ in range(2):
        with pytest.raises(KilledError):
            run(tmp_path / "killed", **kill_at(4, "loss"))
    calls: list[int] = []
    found, progress = run(tmp_path / "killed", report=lambda step, *_: calls.append(step))
    # Three steps were done before each kill.
    assert calls == [7, 8, 9, 10, 11, 12]
    assert same(found, expected) and progress == history
    # Killed after the last step, before the result was kept: nothing is trained again.
    calls.clear()
    found, progress = run(tmp_path / "killed", report=lambda step, *_: calls.append(step))
    assert calls == [] and same(found, expected) and progress == history


def test_a_training_learns_by_its_seed(tmp_path: Path) -> None:
    one, _ = run(tmp_path / "a")
    other, _ = run(tmp_path / "b", settings=make_settings(seed=12))
    assert not same(one, other)
    _, progress = run(tmp_path / "c", settings=make_settings(epochs=40, learning_rate=0.02))
    looks = progress.history
    assert looks[-1]["loss"] < looks[0]["loss"] / 4
    assert progress.best_merit == max(look["dev"] for look in looks) > looks[0]["dev"]
    losses: list[float] = []
    _, progress = run(tmp_path / "d", report=lambda step, total, value, best: losses.append(value))
    assert [look["step"] for look in progress.history] == [3, 6, 9, 12]
    assert [look["epoch"] for look in progress.history] == [0.75, 1.5, 2.25, 3.0]
    means = [np.mean(losses[i : i + 3]) for i in (0, 3, 6, 9)]
    assert [look["loss"] for look in progress.history] == pytest.approx(means)


@pytest.mark.parametrize(
    ("changes", "steps"),
    [
        ({"max_steps": 5}, [3, 5]),
        ({"max_steps": 100}, [3, 6, 9, 12]),
        ({"evaluate_every": None}, [4, 8, 12]),
        ({"evaluate_every": 50}, [12]),
        ({"epochs": 1, "evaluate_every": None}, [4]),
    ],
)
def test_when_dev_is_looked_at(tmp_path: Path, changes: dict[str, Any], steps: list[int]) -> None:
    _, progress = run(tmp_path / "a", settings=make_settings(**changes))
    assert [look["step"] for look in progress.history] == steps
    assert progress.step == steps[-1]


def test_the_best_weights_are_restored(tmp_path: Path) -> None:
    scores, seen = iter([0.1, 0.9, 0.9, 0.3]), []

    def scripted(model: torch.nn.Module) -> float:
        seen.append({n: t.clone() for n, t in model.state_dict().items()})
        return next(scores)

    found, progress = run(tmp_path / "a", evaluate=scripted)
    assert (progress.best_merit, progress.best_step) == (0.9, 6)
    assert same(found, seen[1])
    assert not same(seen[1], seen[2]) and not same(seen[1], seen[3])


def test_scores_that_choose(tmp_path: Path) -> None:
    scores = iter([math.nan, 0.5, math.nan, 0.4])
    _, progress = run(tmp_path / "a", evaluate=lambda model: next(scores))
    assert (progress.best_merit, progress.best_step) == (0.5, 6)
    # The lowest loss is kept whatever the score.
    looks = iter([(0.9, 0.5), (0.8, math.nan), (0.7, 0.2), (0.95, 0.3)])
    found, progress = run(tmp_path / "b", evaluate=lambda model: DevScore(*next(looks)))
    assert (progress.best_step, progress.best_merit) == (9, -0.2)
    assert [(one["dev"], one["dev_loss"]) for one in progress.history][2:] == [(0.7, 0.2), (0.95, 0.3)]
    scores = iter([0.9, 0.8, 0.95, 0.7])
    scored, _ = run(tmp_path / "c", evaluate=lambda model: next(scores))
    assert same(found, scored)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_is_an_error(tmp_path: Path, value: float) -> None:
    def broken(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        return loss(model, batch) * value

    with pytest.raises(PotstillError, match=r"became (nan|inf) at step 1\. Lower the learning"):
        run(tmp_path / "a", loss=broken)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("limit", [0.1, None])
def test_gradients_are_clipped_to_their_norm(tmp_path: Path, limit: float | None) -> None:
    norms: list[float] = []

    def note(optimiser: torch.optim.Optimizer, *_: Any) -> None:
        own = [p.grad for group in optimiser.param_groups for p in group["params"]]
        norms.append(float(torch.stack([grad.norm() for grad in own]).norm()))

    hook = register_optimizer_step_pre_hook(note)
    try:
        run(tmp_path / "checkpoint", settings=make_settings(clip_norm=limit))
    finally:
        hook.remove()
    assert len(norms) == STEPS_PER_EPOCH * EPOCHS
    if limit is None:
        assert max(norms) > 1.0
    else:
        assert norms == pytest.approx([limit] * len(norms), rel=1e-3)


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_a_checkpoint_has_the_generator_of_its_own_device(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    asked: list[Any] = []
    state, device = torch.zeros(3, dtype=torch.uint8), torch.device(kind, 1)
    library = getattr(torch, kind)
    monkeypatch.setattr(library, "get_rng_state", lambda *own: asked.append(own) or state)
    monkeypatch.setattr(library, "set_rng_state", lambda *own: asked.append(own))
    found = generator_states(device)
    assert set(found) == {"cpu", kind}
    set_generators(device, found)
    set_generators(torch.device("cpu"), found)
    place = (device,) if kind == "cuda" else ()
    assert asked == [place, (state, *place)]


def test_a_damaged_checkpoint_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a"
    run(path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"\xff" * 100):
        path.write_bytes(content)
        with pytest.raises(PotstillError, match=r"damaged checkpoint.*Delete it"):
            run(path)
    path.write_bytes(whole)
    assert run(path)[1].step == STEPS_PER_EPOCH * EPOCHS
    # A flipped bit of a checkpoint is an error.
    header = int.from_bytes(whole[:8], "little")
    for position in [*range(0, header, 97), *range(8 + header, len(whole), 61)]:
        if whole[position : position + 1] == b" ":
            continue  # fills the header up
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        with pytest.raises(PotstillError, match="damaged checkpoint"):
            run(path)


def test_several_tasks_choose_by_the_mean_over_their_rows(tmp_path: Path) -> None:
    found = [[0.5, 0.1], [0.6, 0.0], [0.5, 0.5], [0.3, 0.3]]

    def by_task(_: torch.nn.Module) -> ScoresByTask:
        return ScoresByTask([DevScore(one) for one in found[len(steps)]], [900, 100])

    steps: list[int] = []

    def report(step: int, *_: object) -> None:
        if step % 3 == 0:
            steps.append(step)

    _, progress = run(tmp_path / "c", evaluate=by_task, report=report)
    assert [entry["dev_by_task"] for entry in progress.history] == found
    assert [entry["dev"] for entry in progress.history] == pytest.approx([0.46, 0.54, 0.5, 0.3])
    # The plain mean is best at step 9, by the score on the few rows.
    assert (progress.best_step, progress.best_merit) == (6, pytest.approx(0.54))
    assert all("dev_loss" not in entry for entry in progress.history)
    # They stand in the checkpoint, too.
    model = make_model()
    state = training.State(model, make_optimiser(model, make_settings()), Progress())
    state.load(tmp_path / "c")
    assert state.progress.history == progress.history
    # Of several tasks the mean loss over their rows can choose.
    looks = iter([[0.5, 0.1], [0.6, 0.0], [0.5, 0.5], [0.7, 0.3]])

    def by_task(_: torch.nn.Module) -> ScoresByTask:
        return ScoresByTask([DevScore(1 - loss, loss) for loss in next(looks)], [100, 900])

    _, progress = run(tmp_path / "d", evaluate=by_task)
    assert (progress.best_step, progress.best_merit) == (6, pytest.approx(-0.06))
    second = progress.history[1]
    assert (second["dev"], second["dev_loss"]) == pytest.approx((0.94, 0.06))
    assert second["dev_by_task"] == pytest.approx([0.4, 1.0])
    assert second["dev_loss_by_task"] == [0.6, 0.0]
