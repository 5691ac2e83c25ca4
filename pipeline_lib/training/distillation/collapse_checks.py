"""Whether an encoder's vectors have collapsed: all similar, or in few dimensions, which a low loss can hide."""

import numpy as np

from pipeline_lib.shards.training_records import Spread
from pipeline_lib.shards.vectors import unit

SAMPLE = 4096
"""Vectors to measure, evenly spaced: more would change the figures little."""
MAX_COSINE = 0.9
"""Mean cosine above which vectors are all similar, unless the targets' own are too."""
MIN_RANK_SHARE = 0.05
"""Minimum share of the targets' effective rank: below it, most of the variation is lost."""


def effective_rank(vectors: np.ndarray) -> float:
    """Return the effective rank: e to the entropy of the normalised singular values.

    Roy and Vetterli 2007, definition 1: from 1, all on one line, to the width.

    :param vectors: float (rows, width).
    """
    values = np.linalg.svd(vectors.astype(np.float64), compute_uv=False)
    shares = values[values > 0] / max(values.sum(), 1e-300)
    return float(np.exp(-(shares * np.log(shares)).sum()))


def mean_cosine(vectors: np.ndarray) -> float:
    """Return the mean cosine of two different rows of float (rows, width); 1 if there is only one."""
    rows = len(vectors)
    total = unit(vectors.astype(np.float64)).sum(0)
    return float((total @ total - rows) / (rows * (rows - 1))) if rows > 1 else 1.0


def spread_figures(answers: np.ndarray, targets: np.ndarray) -> Spread:
    """Return effective rank and mean cosine of an encoder's vectors, float (rows, width), and of their targets."""
    both = {"": answers, "target_": targets}
    figures = {
        f"{whose}{name}": round(measure(vectors), 6)
        for name, measure in (("effective_rank", effective_rank), ("mean_cosine", mean_cosine))
        for whose, vectors in both.items()
    }
    return Spread(**figures)


def sample_rows(rows: int) -> np.ndarray:
    """Return the numbers of the rows to measure."""
    return np.unique(np.linspace(0, rows - 1, min(rows, SAMPLE)).astype(np.int64))


def collapse_warning(name: str, figures: Spread) -> str | None:
    """Return the warning for an encoder whose vectors have collapsed; None: they have not."""
    rank, usual_rank = figures.effective_rank, figures.target_effective_rank
    cosine, usual = figures.mean_cosine, figures.target_mean_cosine
    alike = cosine > max(MAX_COSINE, (1.0 + usual) / 2)
    if not alike and rank >= MIN_RANK_SHARE * usual_rank:
        return None
    return (
        f"warning: encoders.{name}: its vectors have collapsed: effective rank {rank:.1f} (the "
        f"model's {usual_rank:.1f}), mean cosine {cosine:.3f} (the model's {usual:.3f}). Set `centre: "
        "true`, train it for longer, or at another learning rate."
    )
