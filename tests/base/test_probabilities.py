"""Logits as columns and as probabilities."""

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import logit, sigmoid, softmax
from pipeline_lib.shards.columns import list_column, matrix


def test_logits_survive_the_column_also_in_slices() -> None:
    logits = np.arange(12, dtype=np.float32).reshape(6, 2)
    column = pa.chunked_array([list_column(logits[:4]), list_column(logits[4:])])
    np.testing.assert_array_equal(matrix(column), logits)
    np.testing.assert_array_equal(matrix(column.slice(3, 2)), logits[3:5])


def test_softmax_stays_finite_for_large_logits() -> None:
    np.testing.assert_allclose(softmax(np.array([[1000.0, 0.0]])), [[1.0, 0.0]])


def test_entropy_is_zero_when_certain_and_one_bit_for_a_coin() -> None:
    np.testing.assert_allclose(KINDS["classification"].entropy_bits(np.array([[1.0, 0.0], [0.5, 0.5]])), [0.0, 1.0])


def test_probabilities_of_several_labels() -> None:
    logits = np.array([[0.0, 1000.0], [np.log(3.0), -1000.0]])
    shares = KINDS["multilabel"].probabilities(logits)
    assert shares == pytest.approx(np.array([[0.5, 1.0], [0.75, 0.0]]))
    assert KINDS["multilabel"].confidence(logits) == pytest.approx([0.5, 0.75])
    assert KINDS["multilabel"].entropy_bits(shares) == pytest.approx([1.0, 0.811278], abs=1e-6)
    assert logit(shares)[0, 0] == 0.0
    assert logit(sigmoid(logits[1:, :1])) == pytest.approx(logits[1:, :1])
    assert np.isfinite(logit(shares)).all()
