"""Every loss, as a function of (student logits, teacher logits, labels).  METHODS section 6."""

import torch
import torch.nn.functional as F  # noqa: N812

from pipeline_lib.params import Objective


def logits_loss(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return the mean squared error between logits (Tang et al. 2019, section 3.2).

    The squared distance of a row is summed over classes, then averaged over rows.
    """
    return (student - teacher).pow(2).sum(-1).mean()


def soft_label_loss(
    student: torch.Tensor, teacher: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Return the cross-entropy against the teacher's softened probabilities (Hinton et al. 2015).

    Multiplied by T², so that gradients keep their size when T changes.
    """
    targets = (teacher / temperature).softmax(-1)
    return F.cross_entropy(student / temperature, targets) * temperature**2


def label_loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the cross-entropy against class numbers, or the mean squared error against scores.

    :param outputs: float (rows, classes), or (rows, 1) for scores.
    :param labels: int64 class numbers, or float scores, shape (rows,).
    """
    if labels.is_floating_point():
        return F.mse_loss(outputs.squeeze(-1), labels)
    return F.cross_entropy(outputs, labels)


def representation_loss(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return ½(1 − cos) between sentence vectors, the mean over rows (Wu et al. 2020, equation 1).

    :param student: float (rows, width); :param teacher: the same shape.
    """
    return (1.0 - F.cosine_similarity(student, teacher, dim=-1)).mean() / 2


def objective_loss(
    objective: Objective,
    student: torch.Tensor,
    teacher: torch.Tensor | None,
    labels: torch.Tensor | None,
) -> torch.Tensor:
    """Return the weighted sum of the objective's losses, a scalar.

    :param student: float (rows, classes); :param teacher: the same shape, where it is needed.
    :param labels: int64 or, of a regression, float (rows,), where they are needed.
    """
    terms = []
    if objective.logits:
        terms.append(objective.logits * logits_loss(student, teacher))
    if objective.soft_labels:
        terms.append(
            objective.soft_labels * soft_label_loss(student, teacher, objective.temperature)
        )
    if objective.labels:
        terms.append(objective.labels * label_loss(student, labels))
    return torch.stack(terms).sum()
