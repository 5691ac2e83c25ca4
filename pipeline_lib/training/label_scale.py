"""Standardised regression labels, so that their unit does not affect how well a model learns.

An untrained network's outputs are near 0 with a spread below 1: on labels from 0 to 100 most of a
run goes into reaching their mean, or fails to.  So models are trained on (label − mean) /
deviation, and once trained their output layer is rescaled to the labels' own unit.
"""

from dataclasses import dataclass

import numpy as np
import torch

from pipeline_lib.base.errors import PotstillError


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
