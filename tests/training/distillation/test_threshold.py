"""The decision between two classes, moved to where a metric is best on dev."""

import numpy as np
import pytest

from pipeline_lib.base.kinds import KINDS, score

RNG = np.random.default_rng(0)
LABELS = (RNG.random(300) < 0.3).astype(np.int64)
MARGINS = LABELS + RNG.normal(scale=0.7, size=300) - 2.5
"""A student that nearly always says class 0, though its margins tell the classes apart."""


@pytest.mark.parametrize("positive", [0, 1])
def test_f1_is_best_at_the_moved_threshold(positive: int) -> None:
    outputs = np.stack([np.zeros(300), MARGINS], axis=1).astype(np.float32)

    def f1(shift: float) -> float:
        return score("f1", LABELS, outputs - np.array([0.0, shift]), positive)

    found = f1(KINDS["classification"].shifts("dev", LABELS, outputs, "f1", positive)[1])
    assert found == pytest.approx(max(f1(m + 1e-4) for m in [*MARGINS, MARGINS.min() - 1]))
    assert found > f1(0.0) + (0.3 if positive else 0.02)
