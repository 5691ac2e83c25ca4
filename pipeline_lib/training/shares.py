"""The shares of a batch, where several processes compute one training together."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np


class Share(NamedTuple):
    """What one process computes of a batch.

    :ivar rows: row numbers, at least one; :ivar weight: their part in the batch's mean loss.
    """

    rows: np.ndarray
    weight: float


@runtime_checkable
class Dividing(Protocol):
    """Batches whose loss is not the mean over their rows, each by itself."""

    def shares(self, rows: np.ndarray, count: int) -> list[Share]:
        """Divide a batch among ``count`` processes."""


def shares_of(batches: object, rows: np.ndarray, count: int) -> list[Share]:
    """Divide a batch among ``count`` processes; their weights add up to 1."""
    if isinstance(batches, Dividing):
        return batches.shares(rows, count)
    return divide(rows[:, None], np.ones(len(rows)), count)


def divide(units: np.ndarray, terms: np.ndarray, count: int) -> list[Share]:
    """Divide what must not be torn apart, in turn: neighbours in a batch are alike in length.

    A process for which none is left gets the first, and weight 0: its gradients are then zeros, of
    the same parameters as the others'.

    :param units: row numbers, int64 (units, rows of each).
    :param terms: how many terms of the mean each unit contributes, (units,).
    """
    return [
        Share(units[first::count].reshape(-1), float(terms[first::count].sum() / terms.sum()))
        if first < len(units)
        else Share(units[0], 0.0)
        for first in range(count)
    ]
