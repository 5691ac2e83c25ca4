"""A linear layer fitted to the vectors of a frozen encoder, a probe; its penalty is chosen by cross-validation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from pipeline_lib.base.kinds.kind import TaskKind
from pipeline_lib.training.linear import fit_linear

PENALTIES = (1.0, 0.1, 0.01, 1e-3, 1e-4)
TO_START = (10.0,)
"""That of a head that fine-tuning starts from: a layer that fits few rows leaves the encoder no loss to learn from."""
FOLDS = 5


class Fitted(NamedTuple):
    """A linear layer, float64: weights (outputs, width) and bias (outputs,); its penalty; what cross-validation found.

    :ivar held_out: each row's outputs from a layer fitted without its fold, float32 (rows, outputs), else NaN.
    :ivar loss: their mean loss.
    """

    weights: np.ndarray
    bias: np.ndarray
    penalty: float
    held_out: np.ndarray
    loss: float


def fit_probe(
    vectors: np.ndarray,
    labels: np.ndarray,
    kind: TaskKind,
    outputs: int,
    seed: int,
    penalties: Sequence[float] = PENALTIES,
) -> Fitted:
    """Return the linear layer that has the lowest loss of the labels, with the penalty that serves held-out rows best.

    :param vectors: float32 (rows, width); :param labels: as the kind's loss reads them, a score in standard units.
    :param penalties: those to choose from; a single one is taken without cross-validation.
    """
    mean, deviation = vectors.mean(0), np.maximum(vectors.std(0), 1e-6)
    standard, folds = (vectors - mean) / deviation, _folds(labels, kind.one_of, seed)

    def loss(rows: np.ndarray, answers: torch.Tensor) -> torch.Tensor:
        return kind.loss(answers, torch.from_numpy(labels[rows]))

    def fit(rows: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        [weights], bias = fit_linear([standard[rows]], lambda answers: loss(rows, answers), outputs, penalty)
        return weights, bias

    def cross_validated(penalty: float) -> tuple[float, np.ndarray]:
        answers = np.full((len(labels), outputs), np.nan, np.float32)
        for number in range(FOLDS if len(penalties) > 1 else 0):
            rows = np.flatnonzero(folds == number)
            if len(rows):
                weights, bias = fit(np.flatnonzero(folds != number), penalty)
                answers[rows] = standard[rows] @ weights + bias
        rows = np.flatnonzero(~np.isnan(answers[:, 0]))
        return float(loss(rows, torch.from_numpy(answers[rows]))) if len(rows) else np.nan, answers

    tried = {penalty: cross_validated(penalty) for penalty in penalties}
    best = min(tried, key=lambda penalty: tried[penalty][0])
    weights, bias = fit(np.arange(len(labels)), best)
    weights = weights / deviation[:, None]
    held_out_loss, held_out = tried[best]
    return Fitted(weights.T, bias - mean @ weights, best, held_out, held_out_loss)


def _folds(labels: np.ndarray, one_of: bool, seed: int) -> np.ndarray:
    """Return the fold that each row is held out with, stratified by label, int (rows,); -1: the only row of a class."""
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.lexsort(labels[order].reshape(len(labels), -1).T)]
    folds = np.empty(len(labels), np.int64)
    folds[order] = np.arange(len(labels)) % FOLDS
    if one_of:
        # Without it, its class would be unknown.
        folds[np.bincount(labels)[labels] == 1] = -1
    return folds
