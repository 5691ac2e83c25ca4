"""Columns as arrays: one chunk is looked at where it lies, several are put together."""

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.shards.columns import list_column, matrix, whole


@pytest.mark.parametrize("shape", [(6, 4), (6, 2, 3)])
def test_a_single_chunk_is_not_copied(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.float16).reshape(shape)
    column = pa.chunked_array([list_column(values)])
    before = pa.total_allocated_bytes()
    found = matrix(column)
    assert pa.total_allocated_bytes() == before
    assert np.array_equal(found, values)
    assert np.array_equal(matrix(column.slice(2, 3)), values[2:5])


def test_several_chunks_are_one_array() -> None:
    values = np.arange(12.0).reshape(6, 2)
    column = pa.chunked_array([list_column(values[:2]), list_column(values[2:])])
    assert np.array_equal(matrix(column), values)
    assert whole(pa.chunked_array([], pa.int32())).to_pylist() == []
