"""Metrics against values worked out by hand, and the two ways to compute them compared."""

import numpy as np
import pytest

from pipeline_lib.errors import DistilleryError
from pipeline_lib.evaluation.metrics import from_confusion, score

LABELS = np.array([1, 1, 1, 0, 0, 0, 0, 1])
GUESSES = np.array([1, 1, 0, 0, 0, 0, 1, 1])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("accuracy", 6 / 8),
        # 3 true positives, 1 false positive, 1 false negative.
        ("f1", 2 * 3 / (2 * 3 + 1 + 1)),
        # (3 * 3 - 1 * 1) / sqrt(4 * 4 * 4 * 4)
        ("matthews_correlation", 8 / 16),
    ],
)
def test_binary_metrics_by_hand(metric: str, expected: float) -> None:
    assert score(metric, LABELS, GUESSES, 2) == pytest.approx(expected)


def test_f1_of_three_classes_is_the_mean_of_all() -> None:
    labels, guesses = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])
    assert score("f1", labels, guesses, 3) == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews_correlation"])
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("present", [1, 2])
def test_confusion_matrices_give_scikit_learns_numbers(
    metric: str, classes: int, present: int
) -> None:
    # `present` classes occur at all: the degenerate cases, where a ratio is 0/0, are among them.
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, present, (4, 30))
    guesses = rng.integers(0, classes, (4, 30))
    stack = np.zeros((4, classes, classes), int)
    for i in range(4):
        np.add.at(stack[i], (labels[i], guesses[i]), 1)
    expected = [score(metric, labels[i], guesses[i], classes) for i in range(4)]
    np.testing.assert_allclose(from_confusion(metric, stack), expected)


@pytest.mark.parametrize("hidden", [None, np.array([0, -1])])
def test_hidden_labels_are_never_scored(hidden: np.ndarray | None) -> None:
    with pytest.raises(DistilleryError, match="hidden labels"):
        score("accuracy", hidden, np.array([0, 1]), 2)


def test_missing_rows_and_unknown_metrics_are_refused() -> None:
    with pytest.raises(DistilleryError, match="3 predictions for 2 labels"):
        score("accuracy", np.array([0, 1]), np.array([0, 1, 1]), 2)
    with pytest.raises(DistilleryError, match="bleu"):
        score("bleu", np.array([0, 1]), np.array([0, 1]), 2)
