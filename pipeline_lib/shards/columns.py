"""Columns of shards: those of a sentence, or of the two sentences of a pair, and those of vectors.

The second sentence's columns have the first's names with the suffix ``_2``: ``text_2``.
"""

import numpy as np
import pyarrow as pa

from pipeline_lib.base.text import Text

FIRST, SECOND = "", "_2"
KEPT, MASKED, REPLACED = 0, 1, 2
"""What was done to a word (column ``rules`` of a transfer set)."""


def column_suffixes(table: pa.Table) -> tuple[str, ...]:
    """Return the column suffixes of the sentences that a table holds."""
    return (FIRST, SECOND) if f"text{SECOND}" in table.column_names else (FIRST,)


def for_sides(fields: list[tuple[str, pa.DataType]], pair: bool) -> list[tuple[str, pa.DataType]]:
    """Return the fields of one sentence, or of each of two."""
    endings = (FIRST, SECOND) if pair else (FIRST,)
    return [(name + ending, type_) for ending in endings for name, type_ in fields]


def sentences(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column of all first sentences, followed by all second ones."""
    parts = [table[f"{name}{side}"] for side in column_suffixes(table)]
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks])


def texts(table: pa.Table) -> list[Text]:
    """Return each row's sentence, or pair of sentences."""
    columns = [table[f"text{side}"].to_pylist() for side in column_suffixes(table)]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def list_column(values: np.ndarray) -> pa.FixedSizeListArray:
    """Return an array, shape (rows, ..., width), as a column of fixed-size lists."""
    column = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; a single chunk is not copied, so mapped data stays mapped.

    ``combine_chunks`` would copy it.
    """
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def matrix(column: pa.ChunkedArray) -> np.ndarray:
    """Return the array that :func:`list_column` stored; a single chunk is not copied."""
    values = whole(column)
    shape = [len(values)]
    while pa.types.is_fixed_size_list(values.type):
        shape.append(values.type.list_size)
        values = values.flatten()
    return values.to_numpy().reshape(shape)
