"""The comparison of two systems: cases whose answer is known, and its false positive rate."""

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.results.significance import Difference, compare, holm

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 400)


def flipped(share: float, seeds: int) -> np.ndarray:
    """Predictions that are wrong in about ``share`` of the rows, shape (seeds, rows)."""
    return np.where(RNG.random((seeds, len(LABELS))) < share, 1 - LABELS, LABELS)


def against(a: np.ndarray, b: np.ndarray, metric: str = "accuracy") -> Difference:
    return compare(LABELS, a, b, metric, 2, resamples=300, confidence=0.95, seed=3)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews_correlation"])
class TestEveryMetric:
    def test_identical_systems_do_not_differ(self, metric: str) -> None:
        same = flipped(0.2, 3)
        # The same predictions under other seeds: equal up to the last bit of the mean.
        found = against(same, same[::-1], metric)
        assert found.p == 1.0
        assert found.difference == 0.0

    def test_a_clear_winner_is_significant(self, metric: str) -> None:
        found = against(flipped(0.05, 3), flipped(0.3, 3), metric)
        assert found.p < 0.01
        assert 0 < found.low < found.difference < found.high

    def test_swapping_the_systems_mirrors_the_result(self, metric: str) -> None:
        a, b = flipped(0.10, 2), flipped(0.12, 3)
        there, back = against(a, b, metric), against(b, a, metric)
        assert there.difference == -back.difference
        assert (there.low, there.high) == pytest.approx((-back.high, -back.low), rel=0.05)
        assert there.p == pytest.approx(back.p, rel=0.2)


def test_difference_is_that_of_the_means_over_seeds() -> None:
    a = np.stack([LABELS, 1 - LABELS])
    assert against(a, LABELS[None]).difference == pytest.approx(0.5 - 1.0)
    # A single seed gives no interval.
    found = against(flipped(0.05, 1), flipped(0.3, 3))
    assert found.difference > 0.1 and (found.low, found.high, found.p) == (None, None, None)
    with pytest.raises(PotstillError, match="hidden"):
        compare(None, LABELS[None], LABELS[None], "f1", 2, resamples=100, confidence=0.9, seed=1)


def test_chunks_move_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = flipped(0.1, 2), flipped(0.15, 2)
    whole = against(a, b)
    assert against(a, b) == whole
    monkeypatch.setattr("pipeline_lib.results.significance.CHUNK", 4000)
    assert against(a, b) == whole


def test_seeds_that_agree_leave_the_binomial_interval() -> None:
    # No noise of training: against a system that is always right only the examples vary.
    a = np.repeat(flipped(0.2, 1), 3, axis=0)
    found = against(a, np.repeat(LABELS[None], 2, axis=0))
    deviation = np.sqrt(-found.difference * (1 + found.difference) / len(LABELS))
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation, rel=0.15)


def test_two_seeds_far_apart_prove_nothing() -> None:
    # 5 points of difference, but one of the two seeds is no better than the others.
    a = np.stack([flipped(0.10, 1)[0], flipped(0.20, 1)[0]])
    assert against(a, flipped(0.2, 2)).p > 0.05


def test_correlations_are_compared_too() -> None:
    scores = RNG.normal(size=300)
    a = scores + RNG.normal(scale=0.3, size=(3, 300))
    b = scores + RNG.normal(scale=1.0, size=(3, 300))
    found = compare(scores, a, b, "pearson", 1, resamples=200, confidence=0.95, seed=1)
    assert found.p < 0.01
    assert found.low > 0


@pytest.mark.parametrize(("seeds", "spread"), [(2, 0.018), (5, 0.018)])
def test_equal_systems_are_called_different_in_about_one_case_of_twenty(seeds: int, spread: float) -> None:
    """Equal on average; each training adds its own luck, ``spread`` in accuracy."""
    rng = np.random.default_rng([seeds, int(1000 * spread)])
    trials, called = 400, 0
    for trial in range(trials):
        labels = np.zeros(600, np.int64)
        hardness = rng.normal(size=600)
        a, b = (_trainings(rng, hardness, seeds, spread) for _ in range(2))
        found = compare(labels, a, b, "accuracy", 2, resamples=60, confidence=0.95, seed=trial)
        called += found.p < 0.05
    # Binomial with 400 trials: 5 % would be below 8.3 % in 999 of 1,000 cases.
    assert called / trials < 0.083


def _trainings(rng: np.random.Generator, hardness: np.ndarray, seeds: int, spread: float) -> np.ndarray:
    """Return answers (seeds, rows) that are right in some 80 %: examples and seeds both matter."""
    # An accuracy of 80 % moves by 0.198 where the latent ability moves by 1 (slope of the normal).
    ability = 1.19 + rng.normal(scale=spread / 0.198, size=(seeds, 1))
    noise = rng.normal(size=(seeds, len(hardness)))
    return (ability + hardness + noise < 0).astype(np.int64)


def test_holm_corrects_for_the_number_of_rows() -> None:
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "one_seed": None})
    assert found == {"a": pytest.approx(0.03), "c": pytest.approx(0.06), "b": pytest.approx(0.06), "one_seed": None}
    assert holm({}) == {}
