"""Regression labels in standard units, so that no unit of theirs decides how well a model learns.

A network's first outputs are near 0 with a spread below 1: on labels from 0 to 100 most of a
training goes into reaching their mean, or is lost.  So models are trained on (label − mean) /
deviation, and once trained their output layer is rescaled to answer in the labels' own unit.
"""

from dataclasses import dataclass

import numpy as np
import torch

from pipeline_lib.base.errors import DistilleryError


@dataclass(frozen=True)
class LabelScale:
    """Mean and standard deviation of the labels that a model is trained on."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, labels: np.ndarray) -> "LabelScale":
        """Measure ``labels``, float (rows,).

        :raises DistilleryError: if all are the same: there is nothing to learn.
        """
        values = labels.astype(np.float64)
        if np.ptp(values) == 0:
            raise DistilleryError(
                f"all {len(values):,} training labels are {values[0]:g}: there is nothing to "
                "learn. Check the task's `label` column and `split` in params.yaml."
            )
        return cls(float(values.mean()), float(values.std()))

    def standardise(self, values: np.ndarray) -> np.ndarray:
        """Return labels or outputs in standard units, float32, of the same shape."""
        return ((values.astype(np.float64) - self.mean) / self.deviation).astype(np.float32)

    def rescale(self, layer: torch.nn.Linear) -> None:
        """Have a layer that answers in standard units answer in the labels' unit, in place."""
        with torch.no_grad():
            bias = layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias
            layer.weight.mul_(self.deviation)
            layer.bias = torch.nn.Parameter(bias * self.deviation + self.mean)

    @property
    def inverse(self) -> "LabelScale":
        """The scale whose :meth:`rescale` undoes that of this one."""
        return LabelScale(-self.mean / self.deviation, 1.0 / self.deviation)


def scale_of(labels: np.ndarray) -> LabelScale | None:
    """Return the scale of a regression's labels; None of class numbers."""
    return LabelScale.of(labels) if labels.dtype.kind == "f" else None
