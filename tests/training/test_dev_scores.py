"""The scores on dev by which evaluations are chosen."""

import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn.metrics import log_loss

from pipeline_lib.training.dev_scores import LabelScale, dev_score

DRAW = np.random.default_rng(1)


def test_of_classes_it_is_the_cross_entropy() -> None:
    labels, outputs = np.array([0, 2, 1, 1]), DRAW.normal(size=(4, 3)).astype(np.float32)
    probabilities = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    scored = dev_score("accuracy", 1, labels, outputs, "loss", None)
    assert scored.loss == pytest.approx(log_loss(labels, probabilities), rel=1e-5)
    assert scored.score == np.mean(outputs.argmax(1) == labels)
    assert scored.merit == -scored.loss


def test_of_several_labels_it_is_the_binary_cross_entropy_summed_over_them() -> None:
    labels = np.array([[0, 1], [1, 1], [1, 0]], np.uint8)
    outputs = DRAW.normal(size=(3, 2)).astype(np.float32)
    each = [log_loss(labels[:, n], 1 / (1 + np.exp(-outputs[:, n]))) for n in (0, 1)]
    scored = dev_score("f1_micro", 1, labels, outputs, "loss", None)
    assert scored.loss == pytest.approx(sum(each), rel=1e-5)


def test_of_a_regression_it_is_the_squared_error_in_standard_units() -> None:
    labels, scale = np.array([10.0, 30.0, 20.0], np.float32), LabelScale(16.0, 4.0)
    outputs = np.array([[-1.0], [3.0], [1.5]], np.float32)
    scored = dev_score("pearson", 1, labels, outputs, "loss", scale)
    # Standardised labels are -1.5, 3.5 and 1.
    assert scored.loss == pytest.approx((0.5**2 + 0.5**2 + 0.5**2) / 3)
    assert scored.score == pytest.approx(pearsonr(labels, outputs[:, 0]).statistic)


def test_by_the_metric_no_loss_is_computed() -> None:
    labels, outputs = np.array([0, 1]), np.array([[2.0, 1.0], [3.0, 1.0]], np.float32)
    scored = dev_score("accuracy", 1, labels, outputs, "metric", None)
    assert (scored.score, scored.loss, scored.merit) == (0.5, None, 0.5)
