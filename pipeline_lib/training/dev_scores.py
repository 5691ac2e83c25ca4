"""Scoring a model on a task's dev set in training: by the first metric, and by the loss.

Liu 2020 (the thesis), sections 3.4.1 and 4.3.2, chooses learning rates by the loss on dev, without
saying which.  Here it is the loss of the labels, whatever the objective is: a row and its baseline
are then chosen alike, and dev needs no answers of a teacher.
"""

import numpy as np
import torch

from pipeline_lib.base.kinds import KINDS, kind_of, score
from pipeline_lib.params import Select
from pipeline_lib.training.label_scale import LabelScale
from pipeline_lib.training.loop import DevScore


def dev_score(
    metric: str, positive: int, labels: np.ndarray, outputs: np.ndarray, select: Select, scale: LabelScale | None
) -> DevScore:
    """Return the metric, and if evaluations are chosen by it the loss of the labels.

    :param positive: the class whose F1 is computed.
    :param labels: of scores, in their unit.
    :param outputs: float, (rows, classes), or (rows, 1) for a regression, standardised.
    :param scale: the regression's; None for classes.
    """
    loss = None
    if select == "loss":
        targets = labels if scale is None else scale.standardise(labels)
        loss = float(KINDS[kind_of(metric)].loss(torch.tensor(outputs), torch.tensor(targets)))
    return DevScore(score(metric, labels, outputs, positive), loss)
