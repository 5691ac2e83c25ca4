"""Untuned similarity: cosines, and thresholds that no other one beats."""

import numpy as np
import pytest

from pipeline_lib.base.kinds import score
from pipeline_lib.retrieval.evaluation.similarity import best_threshold, cosines, similarity_scores


def test_cosines_by_hand() -> None:
    first = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 0.0]], np.float32)
    second = np.array([[0.0, 2.0], [6.0, 8.0], [1.0, 0.0]], np.float32)
    np.testing.assert_allclose(cosines(first, second), [0.0, 1.0, 0.0], atol=1e-7)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews_correlation"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("positive", [0, 1])
def test_no_threshold_is_better(metric: str, seed: int, positive: int) -> None:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, 60)
    # Rounded, so that there are ties.
    values = np.round(labels * 0.3 + generator.normal(size=60) * 0.4, 1)

    def at(threshold: float) -> float:
        return score(metric, labels, np.eye(2)[(values > threshold).astype(int)], positive)

    found = at(best_threshold(values, labels, metric, positive))
    # One threshold between any two neighbouring values, and one beyond either end.
    assert found == pytest.approx(max(at(t) for t in np.arange(-3, 3, 0.1) + 0.05))


def test_none_or_all_may_be_above_the_threshold() -> None:
    values, labels = np.array([0.9, 0.6, 0.4, 0.1]), np.array([0, 1, 0, 0])
    assert best_threshold(values, labels, "accuracy") > 0.9
    assert best_threshold(values, np.array([1, 0, 1, 1]), "f1") < 0.1


def test_either_class_may_be_the_similar_one() -> None:
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 2, 200)
    values = labels + generator.normal(size=200) * 0.3
    similar, other = (values[:100], labels[:100]), (values[100:], labels[100:])
    metrics = ["accuracy", "f1", "matthews_correlation"]
    found = similarity_scores(metrics, similar, other, 1)
    flipped = [(values, 1 - labels) for values, labels in (similar, other)]
    assert similarity_scores(metrics, *flipped, 0) == pytest.approx(found, abs=0.02)
    assert found["accuracy"] > 0.9


def test_the_threshold_is_chosen_on_train_alone() -> None:
    labels = np.array([0, 0, 1, 1])
    train = np.array([0.1, 0.2, 0.8, 0.9]), labels
    shifted = np.array([0.55, 0.6, 0.95, 1.0]), labels
    assert similarity_scores(["accuracy"], train, train) == {"accuracy": 1.0}
    assert similarity_scores(["accuracy"], train, shifted) == {"accuracy": 0.5}
    # Every one is answered with 1: class 0 is never found.
    assert similarity_scores(["f1"], train, shifted, 0) == {"f1": 0.0}
    assert similarity_scores(["f1"], train, shifted, 1) == {"f1": pytest.approx(2 / 3)}


def test_correlations_need_no_threshold() -> None:
    scores = np.array([0.0, 1.0, 2.5, 5.0], np.float32)
    values = np.array([0.1, 0.2, 0.9, 0.8])
    found = similarity_scores(["pearson", "spearman"], (values, scores), (values, scores))
    assert found["spearman"] == pytest.approx(0.8)
    assert found["pearson"] == pytest.approx(np.corrcoef(values, scores)[0, 1])
