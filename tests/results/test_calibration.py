"""Likelihood, calibration, confident rows, temperature: against plain loops and known answers."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, recall_score

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.calibration import best_temperature, calibration_errors, log_losses, selective_accuracy
from pipeline_lib.base.kinds.probabilities import of_two, sigmoid, softmax
from pipeline_lib.results.significance import compare_samples

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(scale=2.0, size=(300, 3)).astype(np.float32)
LABELS = RNG.integers(0, 3, 300)


def drawn_labels(logits: np.ndarray) -> np.ndarray:
    each = [RNG.choice(len(shares), p=shares) for shares in softmax(logits)]
    return np.array(each)


def error_of(labels: np.ndarray, logits: np.ndarray) -> float:
    return KINDS["classification"].details(labels, logits)["ece"]


def test_the_likelihood_is_that_of_scikit_learn() -> None:
    expected = log_loss(LABELS, softmax(LOGITS))
    assert KINDS["classification"].details(LABELS, LOGITS)["nll"] == pytest.approx(expected)
    # A sure error costs much and never everything.
    assert log_losses(np.array([1]), np.array([[1000.0, 0.0]])) == pytest.approx([1000.0])
    found = KINDS["regression"].details(np.ones(3), np.array([[1.0], [2.0], [4.0]]))
    assert found == {"mean_absolute_error": pytest.approx(4 / 3)}


def test_the_calibration_error_is_the_mean_over_bins_of_equal_mass() -> None:
    shares = softmax(LOGITS)
    order = np.argsort(shares.max(1))
    right = (shares.argmax(1) == LABELS)[order].reshape(15, 20)
    sure = shares.max(1)[order].reshape(15, 20)
    expected = np.abs(right.mean(1) - sure.mean(1)).mean()
    assert error_of(LABELS, LOGITS) == pytest.approx(expected)
    # No seed reads another's rows.
    both = calibration_errors(LABELS, np.stack([LOGITS, 2 * LOGITS]))(np.arange(300)[None])[0]
    assert both == pytest.approx([expected, error_of(LABELS, 2 * LOGITS)])


def test_the_order_of_equally_sure_rows_plays_no_part() -> None:
    # A constant answer with probability 3/4 that is right in half the rows errs by a quarter.
    labels = np.repeat([0, 1], 50)
    constant = np.tile(np.log([3.0, 1.0]), (100, 1))
    assert error_of(labels, constant) == pytest.approx(0.25)
    assert selective_accuracy(labels, constant, 0.8) == pytest.approx(0.5)


@pytest.mark.parametrize("rows", [1, 7, 40])
def test_few_rows_are_shared_by_the_bins(rows: int) -> None:
    assert 0.0 <= error_of(LABELS[:rows], LOGITS[:rows]) <= 1.0
    perfect = 50.0 * np.eye(3)[LABELS[:rows]]
    assert error_of(LABELS[:rows], perfect) == pytest.approx(0.0, abs=1e-9)


def test_a_sample_is_scored_as_if_it_were_the_data() -> None:
    outputs = np.stack([LOGITS, LOGITS[::-1]])
    chosen = RNG.integers(0, 300, (4, 300))
    for name, scores in KINDS["classification"].detail_samples(LABELS, outputs).items():
        expected = [
            [KINDS["classification"].details(LABELS[rows], one[rows])[name] for one in outputs] for rows in chosen
        ]
        np.testing.assert_allclose(scores(chosen), expected, rtol=1e-12)


def test_accuracy_on_the_most_confident_rows() -> None:
    # By falling confidence: right, right, wrong, right, wrong.
    logits = np.stack([np.zeros(5), np.array([5.0, 4.0, 3.0, 2.0, 1.0])], axis=1)
    labels = np.array([1, 1, 0, 1, 0])
    found = KINDS["classification"].details(labels, logits)
    assert found["accuracy_at_80"] == pytest.approx(3 / 4)
    # Two and a half rows: the third, wrong, counts by half.
    assert found["accuracy_at_50"] == pytest.approx(2 / 2.5)


def test_recall_leaves_out_classes_without_a_row() -> None:
    labels = np.where(LABELS == 1, 2, LABELS)
    expected = recall_score(labels, LOGITS.argmax(1), labels=[0, 2], average=None)
    assert KINDS["classification"].recall(labels, LOGITS) == pytest.approx({0: expected[0], 2: expected[1]})


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_the_temperature_undoes_a_wrong_scale(factor: float) -> None:
    logits = RNG.normal(scale=2.0, size=(4000, 3))
    labels, scaled = drawn_labels(logits), logits * factor
    found = best_temperature(labels, scaled)
    assert found == pytest.approx(factor, rel=0.1)
    best = log_losses(labels, scaled / found).mean()
    assert best <= min(log_losses(labels, scaled / (found * by)).mean() for by in (0.99, 1.01))
    marks = (RNG.random((4000, 3)) < sigmoid(logits)).astype(np.uint8)
    assert best_temperature(marks, scaled) == pytest.approx(factor, rel=0.1)
    # A model without errors gets the lowest, and one of noise the highest.
    assert best_temperature(LABELS, np.eye(3)[LABELS]) == 0.05
    assert best_temperature(LABELS, -np.eye(3)[LABELS]) == 20.0


def test_an_overconfident_system_is_found_out_with_an_interval() -> None:
    logits = RNG.normal(scale=1.5, size=(3, 1000, 2))
    labels = drawn_labels(logits.mean(0))
    # Noise around one truth: the same answers, three times as sure.
    seeds = logits.mean(0) + 0.1 * logits
    outputs = np.concatenate([seeds, 3 * seeds])
    for name, scores in KINDS["classification"].detail_samples(labels, outputs).items():
        found = compare_samples(scores, 1000, (3, 3), resamples=200, confidence=0.95, seed=1)
        assert found.low < found.difference < found.high < 0, name
        assert found.p < 0.01


def test_each_of_several_labels_is_a_classifier_of_two_classes() -> None:
    draw = np.random.default_rng(2)
    marks = (draw.random((60, 3)) < 0.4).astype(np.uint8)
    logits = draw.normal(size=(60, 3)) + 2.0 * marks
    found = KINDS["multilabel"].details(marks, logits)
    each = [KINDS["classification"].details(marks[:, n].astype(np.int64), of_two(logits[:, n])) for n in range(3)]
    assert {*found} == {"nll", "ece"}
    for name, value in found.items():
        assert value == pytest.approx(np.mean([one[name] for one in each]))
    positives = [logits[marks[:, n] == 1, n] > 0 for n in range(3)]
    assert KINDS["multilabel"].recall(marks, logits) == {n: pytest.approx(p.mean()) for n, p in enumerate(positives)}
