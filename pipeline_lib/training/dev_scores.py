"""Scoring a model on a task's dev set in training: by the first metric, and by the loss.

Liu 2020 (the thesis), sections 3.4.1 and 4.3.2, chooses learning rates by the loss on dev, without
saying which.  Here it is the loss of the labels, whatever the objective is: a row and its baseline
are then chosen alike, and dev needs no answers of a teacher.
"""

from dataclasses import dataclass

import numpy as np
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS, kind_of, score
from pipeline_lib.params import Select
from pipeline_lib.training.loop import DevScore


@dataclass(frozen=True)
class LabelScale:
    """Mean and standard deviation of a model's training labels."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, labels: np.ndarray) -> "LabelScale":
        """Return the scale of ``labels``, float (rows,)."""
        values = labels.astype(np.float64)
        if np.ptp(values) == 0:
            raise PotstillError(
                f"all {len(values):,} training labels are {values[0]:g}: there is nothing to "
                "learn. Check the task's `label` column and `split` in params.yaml."
            )
        return cls(float(values.mean()), float(values.std()))

    def standardise(self, values: np.ndarray) -> np.ndarray:
        """Return standardised labels or outputs, float32, of the same shape."""
        return ((values.astype(np.float64) - self.mean) / self.deviation).astype(np.float32)

    def rescale(self, layer: torch.nn.Linear) -> None:
        """Rescale an output layer from standard units to the labels' unit, in place."""
        with torch.no_grad():
            bias = layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias
            layer.weight.mul_(self.deviation)
            layer.bias = torch.nn.Parameter(bias * self.deviation + self.mean)

    @property
    def inverse(self) -> "LabelScale":
        """The scale whose :meth:`rescale` undoes this one's."""
        return LabelScale(-self.mean / self.deviation, 1.0 / self.deviation)


def scale_of(labels: np.ndarray) -> LabelScale | None:
    """Return the scale of a regression's labels; None for class indices."""
    return LabelScale.of(labels) if labels.dtype.kind == "f" else None


def dev_score(
    metric: str, positive: int, labels: np.ndarray, outputs: np.ndarray, select: Select, scale: LabelScale | None
) -> DevScore:
    """Return the metric, and if that selects, the loss of the labels; a regression's outputs are standardised."""
    loss = None
    if select == "loss":
        targets = labels if scale is None else scale.standardise(labels)
        loss = float(KINDS[kind_of(metric)].loss(torch.tensor(outputs), torch.tensor(targets)))
    return DevScore(score(metric, labels, outputs, positive), loss)
