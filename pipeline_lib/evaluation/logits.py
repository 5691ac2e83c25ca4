"""Logits: out of a shard set's table, and what they say (probabilities, entropy)."""

import numpy as np
import pyarrow as pa


def read_logits(column: pa.ChunkedArray) -> np.ndarray:
    """Return a column of fixed-size lists as float32, shape (rows, classes)."""
    classes = column.type.list_size
    chunks = [chunk.flatten().to_numpy().reshape(-1, classes) for chunk in column.chunks]
    return np.concatenate(chunks) if chunks else np.empty((0, classes), np.float32)


def write_logits(logits: np.ndarray) -> pa.FixedSizeListArray:
    """Return logits, shape (rows, classes), as a column of fixed-size float32 lists."""
    values = pa.array(np.ascontiguousarray(logits, np.float32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(values, logits.shape[1])


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return probabilities, float64, shape (rows, classes)."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    exponents = np.exp(shifted)
    return exponents / exponents.sum(axis=1, keepdims=True)


def entropy_bits(probabilities: np.ndarray) -> np.ndarray:
    """Return each row's entropy in bits, shape (rows,): 0 is certain, log2(classes) a toss-up."""
    safe = np.where(probabilities > 0, probabilities, 1.0)
    # + 0.0 turns the -0.0 of a certain row into 0.0.
    return -(probabilities * np.log2(safe)).sum(axis=1) + 0.0
