"""Logits as columns and as probabilities."""

import numpy as np
import pyarrow as pa

from pipeline_lib.base.probabilities import entropy_bits, softmax
from pipeline_lib.shards.columns import list_column, matrix


def test_logits_survive_the_column_also_in_slices() -> None:
    logits = np.arange(12, dtype=np.float32).reshape(6, 2)
    column = pa.chunked_array([list_column(logits[:4]), list_column(logits[4:])])
    np.testing.assert_array_equal(matrix(column), logits)
    np.testing.assert_array_equal(matrix(column.slice(3, 2)), logits[3:5])


def test_softmax_stays_finite_for_large_logits() -> None:
    np.testing.assert_allclose(softmax(np.array([[1000.0, 0.0]])), [[1.0, 0.0]])


def test_entropy_is_zero_when_certain_and_one_bit_for_a_coin() -> None:
    np.testing.assert_allclose(entropy_bits(np.array([[1.0, 0.0], [0.5, 0.5]])), [0.0, 1.0])
