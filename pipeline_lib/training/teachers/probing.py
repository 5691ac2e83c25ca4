"""A linear layer fitted to the vectors of a frozen encoder, a probe; its penalty is chosen by cross-validation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from pipeline_lib.base.kinds.kind import TaskKind
from pipeline_lib.training.linear import draw_folds, fit_linear, held_out_outputs

PENALTIES = (1.0, 0.1, 0.01, 1e-3, 1e-4)
TO_START = (10.0,)
"""That of a head that fine-tuning starts from: a layer that fits few rows leaves the encoder no loss to learn from."""


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
    standard = (vectors - mean) / deviation
    folds = draw_folds(labels, kind.one_of, seed) if len(penalties) > 1 else np.full(len(labels), -1)

    def loss(rows: np.ndarray, answers: torch.Tensor) -> torch.Tensor:
        return kind.loss(answers, torch.from_numpy(labels[rows]))

    def cross_validated(penalty: float) -> tuple[float, np.ndarray]:
        answers = held_out_outputs([standard], loss, outputs, penalty, folds)
        rows = np.flatnonzero(~np.isnan(answers[:, 0]))
        return float(loss(rows, torch.from_numpy(answers[rows]))) if len(rows) else np.nan, answers

    tried = {penalty: cross_validated(penalty) for penalty in penalties}
    best = min(tried, key=lambda penalty: tried[penalty][0])
    everything = np.arange(len(labels))
    [weights], bias = fit_linear([standard], lambda answers: loss(everything, answers), outputs, best)
    weights = weights / deviation[:, None]
    held_out_loss, held_out = tried[best]
    return Fitted(weights.T, bias - mean @ weights, best, held_out, held_out_loss)
