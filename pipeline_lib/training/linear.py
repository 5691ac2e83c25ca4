"""Linear models: outputs that are linear in given features, fitted to any loss by L-BFGS.

They take seconds where a network takes minutes, have one minimum, and draw nothing at random.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

Features = np.ndarray | csr_matrix
"""Float (rows, features)."""
ITERATIONS = 200
FOLDS = 5
"""Of a cross-validation."""


def fit_linear(
    blocks: Sequence[Features], loss: Callable[[torch.Tensor], torch.Tensor], outputs: int, penalty: float
) -> tuple[list[np.ndarray], np.ndarray]:
    """Minimise ``loss(outputs) + penalty / 2 · Σ weights²``, where outputs are Σ block · weights + bias.

    :param blocks: the features, side by side; each is of the same rows.
    :param loss: maps outputs, float32 (rows, outputs), to their mean loss, a scalar.
    :returns: each block's weights, float64 (features, outputs), and the bias (outputs,), which is not penalised.
    """
    widths = [block.shape[1] for block in blocks]
    ends = np.cumsum(widths)[:-1]

    def cost(flat: np.ndarray) -> tuple[float, np.ndarray]:
        table = flat.reshape(-1, outputs)
        weights, bias = table[:-1], table[-1]
        answers = sum(
            (block @ w.astype(block.dtype) for block, w in zip(blocks, np.split(weights, ends), strict=True)), bias
        )
        answers = torch.tensor(answers, dtype=torch.float32, requires_grad=True)
        value = loss(answers)
        value.backward()
        slope = answers.grad.numpy()
        slopes = np.vstack([*(block.T @ slope for block in blocks), slope.sum(0)]).astype(np.float64)
        slopes[:-1] += penalty * weights
        return value.item() + penalty / 2 * float((weights**2).sum()), slopes.ravel()

    # Several threads would add in another order: one gives the same weights on any number of cores.
    with threadpool_limits(1, "blas"):
        start = np.zeros((sum(widths) + 1) * outputs)
        solved = minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    table = solved.reshape(-1, outputs)
    return np.split(table[:-1], ends), table[-1]


def held_out_outputs(
    blocks: Sequence[Features],
    loss: Callable[[np.ndarray, torch.Tensor], torch.Tensor],
    outputs: int,
    penalty: float,
    folds: np.ndarray,
) -> np.ndarray:
    """Return each row's outputs from a fit without its fold, float32 (rows, outputs), and NaN without a fold.

    :param loss: maps rows and their outputs to their mean loss; :param folds: of :func:`draw_folds`, int (rows,).
    """
    answers = np.full((len(folds), outputs), np.nan, np.float32)
    for number in range(folds.max() + 1):
        rows, others = np.flatnonzero(folds == number), np.flatnonzero(folds != number)
        if len(rows):
            weights, bias = fit_linear([block[others] for block in blocks], partial(loss, others), outputs, penalty)
            answers[rows] = sum((block[rows] @ w for block, w in zip(blocks, weights, strict=True)), bias)
    return answers


def draw_folds(labels: np.ndarray, one_of: bool, seed: int) -> np.ndarray:
    """Return the fold that each row is held out with, stratified by label, int (rows,); -1: the only row of a class."""
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.lexsort(labels[order].reshape(len(labels), -1).T)]
    folds = np.empty(len(labels), np.int64)
    folds[order] = np.arange(len(labels)) % FOLDS
    if one_of:
        # Without it, its class would be unknown.
        folds[np.bincount(labels)[labels] == 1] = -1
    return folds
