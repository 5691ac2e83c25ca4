"""Probabilities and entropy of logits."""

import numpy as np

_SMALLEST = float(np.finfo(np.float64).eps) / 2


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return probabilities, float64, shape (rows, classes)."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    exponents = np.exp(shifted)
    return exponents / exponents.sum(axis=1, keepdims=True)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Return each label's probability, float64, in the logits' shape."""
    # Unlike 1 / (1 + exp(-x)), this cannot overflow.
    return 0.5 * (1.0 + np.tanh(logits.astype(np.float64) / 2.0))


def logit(probabilities: np.ndarray) -> np.ndarray:
    """Return the logits of labels' probabilities, float64; of certain ones ±37, not infinity."""
    inside = np.clip(probabilities, _SMALLEST, 1.0 - _SMALLEST)
    return np.log(inside) - np.log1p(-inside)


def of_two(logits: np.ndarray) -> np.ndarray:
    """Return a label's logits as those of the classes "no" and "yes", shape (..., 2).

    The softmax of 0 and a logit is the sigmoid of the logit.
    """
    return np.stack([np.zeros_like(logits), logits], axis=-1)


def answered(logits: np.ndarray) -> np.ndarray:
    """Return which rows have an answer, bool (rows,); the logits of the others are NaN."""
    return ~np.isnan(logits).any(axis=1)


def entropy_bits(probabilities: np.ndarray) -> np.ndarray:
    """Return the entropy in bits of each row's probabilities, shape (rows,)."""
    safe = np.where(probabilities > 0, probabilities, 1.0)
    # + 0.0 turns the -0.0 of a certain row into 0.0.
    return -(probabilities * np.log2(safe)).sum(axis=1) + 0.0


def threshold_at(confidences: np.ndarray, share: float) -> float:
    """Return the confidence at or below which the given share of these rows lies.

    It is halfway between the last row below and the first above; rows of equal confidence cannot be
    separated, so more rows may fall below.
    """
    count = round(share * len(confidences))
    if count == 0:
        return 0.0
    if count == len(confidences):
        return 1.0
    rising = np.sort(confidences)
    return float(rising[count - 1 : count + 1].mean())
