"""Trainings that are killed at a step and go on, for the tests that compare their bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.training import loop


def killed_and_resumed(
    train: Callable[[Callable[..., None]], Any], step: int, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill a training at a step and train on, with a checkpoint at every step, in a store of its own.

    :param train: trains, and tells what it is handed of each step, whose number comes first.
    """
    monkeypatch.setenv("POTSTILL_HOME", str(home))
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)

    def stop(current: int, *_: Any) -> None:
        if current == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(stop)
    steps: list[int] = []
    train(lambda current, *_: steps.append(current))
    assert steps[0] in (step, step + 1)
