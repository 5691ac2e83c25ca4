"""Linear models: outputs that are linear in given features, fitted to any loss by L-BFGS.

They take seconds where a network takes minutes, have one minimum, and draw nothing at random.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

Features = np.ndarray | csr_matrix
"""Float (rows, features)."""
ITERATIONS = 200


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
        parts = zip(blocks, np.split(weights, ends), strict=True)
        answers = sum((block @ part.astype(block.dtype) for block, part in parts), bias)
        answers = torch.tensor(answers, dtype=torch.float32, requires_grad=True)
        value = loss(answers)
        value.backward()
        slope = answers.grad.numpy()
        slopes = np.vstack([*(block.T @ slope for block in blocks), slope.sum(0)]).astype(np.float64)
        slopes[:-1] += penalty * weights
        return float(value.detach()) + penalty / 2 * float((weights**2).sum()), slopes.ravel()

    # Several threads would add in another order: one gives the same weights on any number of cores.
    with threadpool_limits(1, "blas"):
        start = np.zeros((sum(widths) + 1) * outputs)
        found = minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    table = found.reshape(-1, outputs)
    return np.split(table[:-1], ends), table[-1]
