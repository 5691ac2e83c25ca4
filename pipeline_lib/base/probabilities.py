"""Probabilities, confidence and entropy of logits."""

import numpy as np


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return probabilities, float64, shape (rows, classes)."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    exponents = np.exp(shifted)
    return exponents / exponents.sum(axis=1, keepdims=True)


def answered(logits: np.ndarray) -> np.ndarray:
    """Return which rows have an answer, bool (rows,); the logits of the others are NaN."""
    return ~np.isnan(logits).any(axis=1)


def entropy_bits(probabilities: np.ndarray) -> np.ndarray:
    """Return each row's entropy in bits, shape (rows,): 0 is certain, log2(classes) a toss-up."""
    safe = np.where(probabilities > 0, probabilities, 1.0)
    # + 0.0 turns the -0.0 of a certain row into 0.0.
    return -(probabilities * np.log2(safe)).sum(axis=1) + 0.0


def confidence(logits: np.ndarray) -> np.ndarray:
    """Return the probability of each row's answer, float64 (rows,)."""
    return softmax(logits).max(axis=1)


def threshold_at(confidences: np.ndarray, share: float) -> float:
    """Return the confidence at or below which the given share of these rows lies.

    It is halfway between the last row below and the first above; rows of equal confidence cannot be
    separated, so more rows may fall below.

    :param confidences: probabilities, float (rows,).
    """
    count = round(share * len(confidences))
    if count == 0:
        return 0.0
    if count == len(confidences):
        return 1.0
    rising = np.sort(confidences)
    return float(rising[count - 1 : count + 1].mean())
