"""What is shown of a stage's training adds up over its runs, trained or found."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from pipeline_lib.shards.training_records import TrainingRecord
from pipeline_lib.training import progress
from pipeline_lib.training.progress import show_training
from tests.kit.made_up import made_up_training


@dataclass(frozen=True)
class Run:
    planned_steps: int


@dataclass(frozen=True)
class Runs:
    planned_steps: int


def test_steps_add_up_over_runs_and_what_was_found_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[int, int, str]] = []

    @contextmanager
    def silent(title: str, unit: str) -> Iterator[object]:
        assert (title, unit) == ("training", "steps")
        yield lambda done, total, note: shown.append((done, total, note))

    monkeypatch.setattr(progress, "show_progress", silent)
    first, second = Run(100), Run(100)
    with show_training("training", [Runs(100), Runs(100)], lambda run, loss, best: f"{best}") as own:
        own.on_progress(first, (25, 50, 0.5, 0.7))
        own.on_progress(first, (40, 50, 0.5, 0.8))
        own.on_done(first)
        own.on_progress(second, (1, 100, 0.5, 0.1))
    assert shown == [(50, 200, "0.7"), (80, 200, "0.8"), (101, 200, "0.1")]


def test_the_best_so_far_is_named_by_what_selects() -> None:
    by_score, by_loss = SimpleNamespace(is_by_loss=False), SimpleNamespace(is_by_loss=True)
    assert progress.losses(by_score, 0.25, 0.5) == "loss 0.250 best dev 0.5000"
    assert progress.losses(by_score, 0.25, -math.inf) == "loss 0.250 best dev 0.0000"
    assert progress.losses(by_loss, 0.25, -0.5) == "loss 0.250 lowest on dev 0.5000"
    record = TrainingRecord(**made_up_training())
    assert progress.on_dev(record) == "0.9000"
    loss = record.model_copy(update={"best_dev_loss": 0.25})
    assert progress.on_dev(loss) == "0.9000 at the lowest loss 0.2500"
