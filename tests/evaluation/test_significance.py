"""The paired bootstrap on cases whose answer is known."""

import numpy as np
import pytest

from pipeline_lib.errors import DistilleryError
from pipeline_lib.evaluation.significance import Difference, paired_bootstrap

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 400)


def flipped(share: float, seeds: int) -> np.ndarray:
    """Predictions that are wrong in about ``share`` of the rows, shape (seeds, rows)."""
    return np.where(RNG.random((seeds, len(LABELS))) < share, 1 - LABELS, LABELS)


def compare(a: np.ndarray, b: np.ndarray, metric: str = "accuracy") -> Difference:
    return paired_bootstrap(LABELS, a, b, metric, 2, resamples=300, confidence=0.95, seed=3)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews_correlation"])
class TestEveryMetric:
    def test_identical_systems_do_not_differ(self, metric: str) -> None:
        same = flipped(0.2, 3)
        # The same predictions under other seeds: equal up to the last bit of the mean.
        found = compare(same, same[::-1], metric)
        assert found.p == 1.0
        assert found.difference == pytest.approx(0.0, abs=1e-12)

    def test_a_clear_winner_is_significant(self, metric: str) -> None:
        found = compare(flipped(0.05, 3), flipped(0.3, 2), metric)
        assert found.p < 0.01
        assert 0 < found.low < found.difference < found.high

    def test_swapping_the_systems_mirrors_the_result(self, metric: str) -> None:
        a, b = flipped(0.10, 2), flipped(0.12, 2)
        there, back = compare(a, b, metric), compare(b, a, metric)
        assert there.difference == -back.difference
        assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
        assert there.p == back.p


def test_difference_is_that_of_the_means_over_seeds() -> None:
    a = np.stack([LABELS, 1 - LABELS])
    assert compare(a, LABELS[None]).difference == pytest.approx(0.5 - 1.0)


def test_equal_seeds_give_equal_numbers() -> None:
    a, b = flipped(0.1, 1), flipped(0.15, 1)
    assert compare(a, b) == compare(a, b)


def test_interval_covers_what_the_binomial_says() -> None:
    # Against a system that is always right, the difference is minus the error rate.
    found = compare(flipped(0.2, 1), LABELS[None])
    deviation = np.sqrt(-found.difference * (1 + found.difference) / len(LABELS))
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation, rel=0.2)


def test_hidden_labels_are_refused() -> None:
    with pytest.raises(DistilleryError, match="hidden"):
        paired_bootstrap(
            None, LABELS[None], LABELS[None], "f1", 2, resamples=100, confidence=0.9, seed=1
        )
