"""Systems to score: one method's trained students, with their answers on the held-out splits."""

from dataclasses import dataclass

import numpy as np

from pipeline_lib.params import Method
from pipeline_lib.results.schema import ParameterCounts, Source, Training


@dataclass(frozen=True)
class System:
    """One method's trained students, and the teacher that they are compared with.

    ``logits`` holds, by split and seed, float32 of shape (rows, classes).
    """

    method: Method
    teacher: str
    learned_from: Source
    logits: dict[str, dict[int, np.ndarray]]
    parameters: ParameterCounts
    training: Training
