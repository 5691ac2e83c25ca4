"""Logits as columns and as probabilities."""

import numpy as np
import pytest

from pipeline_lib.base.probabilities import confidence, entropy_bits, logit, probabilities, sigmoid, softmax


def test_probabilities() -> None:
    np.testing.assert_allclose(softmax(np.array([[1000.0, 0.0]])), [[1.0, 0.0]])
    # Entropy is zero when certain and one bit for a coin.
    np.testing.assert_allclose(entropy_bits(np.array([[1.0, 0.0], [0.5, 0.5]])), [0.0, 1.0])
    # Probabilities of several labels.
    logits = np.array([[0.0, 1000.0], [np.log(3.0), -1000.0]])
    shares = probabilities(logits, "multilabel")
    assert shares == pytest.approx(np.array([[0.5, 1.0], [0.75, 0.0]]))
    assert confidence(logits, "multilabel") == pytest.approx([0.5, 0.75])
    assert entropy_bits(shares, "multilabel") == pytest.approx([1.0, 0.811278], abs=1e-6)
    assert logit(shares)[0, 0] == 0.0
    assert logit(sigmoid(logits[1:, :1])) == pytest.approx(logits[1:, :1])
    assert np.isfinite(logit(shares)).all()
