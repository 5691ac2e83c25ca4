"""What is shown of a stage's training adds up over its runs, trained or found."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from pipeline_lib.training import progress
from pipeline_lib.training.progress import show_training


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
    with show_training(
        "training", [Runs(100), Runs(100)], lambda run, loss, best: f"{best}"
    ) as own:
        own.on_progress(first, (25, 50, 0.5, 0.7))
        own.on_progress(first, (40, 50, 0.5, 0.8))
        own.on_done(first)
        own.on_progress(second, (1, 100, 0.5, 0.1))
    assert shown == [(50, 200, "0.7"), (80, 200, "0.8"), (101, 200, "0.1")]
