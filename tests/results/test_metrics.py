"""Metrics against values worked out by hand, and against those of scikit-learn and scipy."""

import warnings

import numpy as np
import pytest
import sklearn.metrics

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS, score
from pipeline_lib.base.kinds.classes import from_confusion
from pipeline_lib.base.kinds.label_sets import from_labels
from pipeline_lib.base.kinds.scores import from_scores
from pipeline_lib.results.significance import compare

LABELS = np.array([1, 1, 1, 0, 0, 0, 0, 1])
GUESSES = np.array([1, 1, 0, 0, 0, 0, 1, 1])


def one_hot(guesses: np.ndarray, classes: int) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[guesses]


def test_metrics_of_classes_by_hand() -> None:
    # 3 true positives, 1 false positive, 1 false negative; (3 * 3 - 1 * 1) / sqrt(4 * 4 * 4 * 4).
    for metric, expected in (("accuracy", 6 / 8), ("f1", 6 / 8), ("matthews_correlation", 8 / 16)):
        assert score(metric, LABELS, one_hot(GUESSES, 2)) == pytest.approx(expected)
    labels, outputs = np.array([1, 1, 1, 0]), one_hot(np.array([1, 1, 0, 0]), 2)
    assert score("f1", labels, outputs) == score("f1", labels, outputs, 1) == pytest.approx(4 / 5)
    assert score("f1", labels, outputs, 0) == pytest.approx(2 / 3)
    labels, guesses = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])
    assert score("f1", labels, one_hot(guesses, 3)) == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)


def scikit_learns(metric: str, labels: np.ndarray, guesses: np.ndarray, classes: int, positive: int) -> float:
    if metric == "accuracy":
        return sklearn.metrics.accuracy_score(labels, guesses)
    if metric == "matthews_correlation":
        return sklearn.metrics.matthews_corrcoef(labels, guesses)
    each = sklearn.metrics.f1_score(labels, guesses, labels=range(classes), average=None, zero_division=0.0)
    return each[positive] if classes == 2 else each.mean()


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews_correlation"])
@pytest.mark.parametrize(("classes", "present", "positive"), [(2, 1, 0), (2, 2, 1), (3, 1, 0), (5, 2, 1)])
def test_decisions_are_scored_as_by_scikit_learn(metric: str, classes: int, present: int, positive: int) -> None:
    # `present` classes occur at all: the degenerate cases, where a ratio is 0/0, are among them.
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, present, (4, 30))
    guesses = rng.integers(0, classes, (4, 30))
    stack = np.zeros((4, classes, classes), int)
    for i in range(4):
        np.add.at(stack[i], (labels[i], guesses[i]), 1)
    expected = [scikit_learns(metric, labels[i], guesses[i], classes, positive) for i in range(4)]
    np.testing.assert_allclose(from_confusion(metric, stack, positive), expected)
    each = [score(metric, labels[i], one_hot(guesses[i], classes), positive) for i in range(4)]
    assert each == from_confusion(metric, stack, positive).tolist()


def test_what_cannot_be_scored_is_refused() -> None:
    two = np.array([0, 1])
    for metric, labels, guesses, message in (
        ("accuracy", None, two, "hidden labels"),
        ("accuracy", np.array([0, -1]), two, "hidden labels"),
        ("accuracy", two, np.array([0, 1, 1]), "3 predictions for 2 labels"),
        ("bleu", two, two, "bleu"),
    ):
        with pytest.raises(PotstillError, match=message):
            score(metric, labels, one_hot(guesses, 2))


SCORES = np.array([0.0, 1.0, 2.0, 4.0, 5.0], np.float32)


def test_correlations_by_hand() -> None:
    line = (2.0 * SCORES - 3.0)[:, None]
    assert score("pearson", SCORES, line) == pytest.approx(1.0)
    assert score("spearman", SCORES, -(line**3)) == pytest.approx(-1.0)
    # Deviations (-2.4, -1.4, -0.4, 1.6, 2.6) and (-1, 1, -1, 1, 0): sums 3.0, 17.2 and 4.
    answers = np.array([[-1.0], [1.0], [-1.0], [1.0], [0.0]])
    assert score("pearson", SCORES, answers) == pytest.approx(3.0 / np.sqrt(17.2 * 4.0))
    assert KINDS["regression"].agreement(SCORES, answers) == score("pearson", SCORES, answers)
    # A constant correlates with nothing.
    constant = np.full((5, 1), 2.5)
    assert score("pearson", SCORES, constant) == score("spearman", SCORES, constant) == 0.0
    assert from_scores("pearson", SCORES, constant.T).tolist() == [0.0]


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_stacked_correlations_are_scipys(metric: str) -> None:
    rng = np.random.default_rng(5)
    # Rounded, so that there are ties.
    labels, answers = rng.normal(size=40).round(1), rng.normal(size=(6, 40)).round(1)
    expected = [score(metric, labels, row[:, None]) for row in answers]
    np.testing.assert_allclose(from_scores(metric, labels, answers), expected)


MARKS = np.random.default_rng(3).random((90, 4)) < [0.5, 0.3, 0.1, 0.0]
SEVERAL = (np.random.default_rng(4).normal(size=(90, 4)) + 2 * MARKS).round(1).astype(np.float32)
"""Logits of four labels, some of them equal; the last label never applies."""
RESAMPLED = np.random.default_rng(5).integers(0, 90, (3, 90))


def of_sklearn(metric: str, labels: np.ndarray, outputs: np.ndarray) -> float:
    if metric == "average_precision":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a label that never applies
            return sklearn.metrics.average_precision_score(labels, outputs, average="macro")
    average = metric.removeprefix("f1_")
    return sklearn.metrics.f1_score(labels, outputs > 0, average=average, zero_division=0)


@pytest.mark.parametrize("metric", ["f1_micro", "f1_macro", "average_precision"])
def test_scores_of_several_labels_are_those_of_scikit_learn(metric: str) -> None:
    labels = MARKS.astype(np.uint8)
    assert score(metric, labels, SEVERAL) == pytest.approx(of_sklearn(metric, MARKS, SEVERAL))
    counts = np.stack([np.bincount(rows, minlength=90) for rows in RESAMPLED]).astype(float)
    seeds = np.stack([SEVERAL, SEVERAL[::-1]])
    expected = [[of_sklearn(metric, MARKS[r], one[r]) for one in seeds] for r in RESAMPLED]
    assert from_labels(metric, labels, seeds, counts) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("positive", [0, 1])
def test_the_area_of_two_classes_is_scikit_learns(positive: int) -> None:
    labels = MARKS[:, 0].astype(np.int64)
    seeds = np.stack([SEVERAL[:, :2], SEVERAL[::-1, :2]])
    marks = labels == positive

    def area(seed: np.ndarray, rows: np.ndarray) -> float:
        margins = seed[:, positive] - seed[:, 1 - positive]
        return sklearn.metrics.average_precision_score(marks[rows], margins[rows])

    assert score("auprc", labels, seeds[0], positive) == pytest.approx(area(seeds[0], np.arange(90)))
    answers = np.stack([KINDS["classification"].compared(seed) for seed in seeds])
    found = KINDS["classification"].resampled("auprc", labels, answers, 2, positive, RESAMPLED)
    assert found == pytest.approx(np.array([[area(seed, rows) for seed in seeds] for rows in RESAMPLED]))
    # Other metrics of the same outputs are of what they decide.
    decided = KINDS["classification"].resampled("f1", labels, answers, 2, positive, RESAMPLED)
    expected = [[score("f1", labels[rows], seed[rows], positive) for seed in seeds] for rows in RESAMPLED]
    assert decided == pytest.approx(np.array(expected))


def test_several_labels_agree_where_all_do() -> None:
    outputs = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, -1.0], [-1.0, 2.0]])
    labels = np.array([[1, 0], [1, 0], [0, 0], [0, 1]], np.uint8)
    assert KINDS["multilabel"].agreement(labels, outputs) == 0.75
    assert sklearn.metrics.accuracy_score(labels, KINDS["multilabel"].decide(outputs)) == 0.75


def test_several_labels_are_compared_by_their_own_metric() -> None:
    labels = MARKS[:, :3].astype(np.uint8)
    good, bad = SEVERAL[:, :3], -SEVERAL[:, :3]
    settings = {"resamples": 50, "confidence": 0.95, "seed": 1}
    for metric in ("f1_micro", "average_precision"):
        pair = np.stack([good, good * 1.1]), np.stack([bad, bad * 1.1])
        found = compare(labels, *pair, metric, 3, **settings)
        expected = score(metric, labels, good) - score(metric, labels, bad)
        assert found.difference == pytest.approx(expected)
        assert found.low > 0
