"""Objectives: weighted sums of terms, each a function of a student's output and a target.

A network returns named outputs (``logits``, ``vector``); a set has named targets (``labels``, a teacher's ``logits``).
:func:`register_term` adds a term, which any row's ``objective`` in params.yaml can then name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature

import torch
import torch.nn.functional as F  # noqa: N812

from pipeline_lib.base.kinds import KINDS, Classes, TaskKind
from pipeline_lib.params import register_objective


def logits_loss(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return the logits' squared differences, summed over classes, mean over rows (Tang et al. 2019, section 3.2)."""
    return (student - teacher).pow(2).sum(-1).mean()


def representation_loss(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return ½(1 − cos) of sentence vectors (rows, width), averaged over rows (Wu et al. 2020, equation 1)."""
    return (1.0 - F.cosine_similarity(student, teacher, dim=-1)).mean() / 2


def patience_loss(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return the squared distance between normalised states (Sun et al. 2019, equation 7).

    It is averaged over rows and pairs of layers, where the paper sums.  The authors' code averages
    over the width as well: a β of 100 there is 100 / width here.

    :param student: float (rows, layers, width); the last layer is not compared.
    :param teacher: float (rows, layers − 1, width): the layers matched with the student's others.
    """
    normalised = F.normalize(student[:, :-1].float(), dim=-1)
    return (normalised - F.normalize(teacher, dim=-1)).pow(2).sum(-1).mean()


def token_loss(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return the mean squared error of embeddings, (tokens, width) (Jiao et al. 2020, section 3.1, L_embd)."""
    return F.mse_loss(student.float(), teacher.float())


def layers_loss(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return each layer's mean squared error, of states or attention, summed over layers.

    Jiao et al. 2020, section 3.1, L_hidn and L_attn; the authors sum over layers (section 3.2).

    :param student: float (layers, tokens or pairs, width or heads); :param teacher: the same shape.
    """
    return (student.float() - teacher.float()).pow(2).mean((1, 2)).sum()


Loss = Callable[..., torch.Tensor]
Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Term:
    """One term: the student's output, its target, and the loss of (output, target, the objective's temperature).

    What the loss takes by keyword alone are the term's parameters.
    """

    output: str
    target: str
    loss: Loss


def _of_kind(kind: TaskKind) -> dict[str, Term]:
    """Return the terms that depend on the kind of the task."""
    return {
        "soft_labels": Term("logits", "logits", lambda output, target, t: kind.soft_loss(output, target, t)),
        "labels": Term("logits", "labels", lambda output, target, _: kind.loss(output, target)),
    }


TERMS: dict[str, Term] = {
    "logits": Term("logits", "logits", lambda output, target, _: logits_loss(output, target)),
    **_of_kind(Classes()),
    "patience": Term("states", "states", lambda output, target, _: patience_loss(output, target)),
    "embeddings": Term("embeddings", "teacher_embeddings", lambda output, target, _: token_loss(output, target)),
    "hidden": Term("hidden", "teacher_hidden", lambda output, target, _: layers_loss(output, target)),
    "attentions": Term("attentions", "teacher_attentions", lambda output, target, _: layers_loss(output, target)),
    "vectors": Term("vector", "vectors", lambda output, target, _: representation_loss(output, target)),
}
"""The terms, by the names of their weights in params.yaml."""


def register_term(name: str, term: Term, beside: bool = False) -> None:
    """Add a term, which a row's ``objective`` can then name with a weight.

    :param beside: whether that weight is added to the others, whatever they sum up to.
    """
    taken = signature(term.loss).parameters.values()
    register_objective(name, term.target, beside, [each.name for each in taken if each.kind is each.KEYWORD_ONLY])
    TERMS[name] = term


def objective_loss(
    weights: Mapping[str, float],
    outputs: Tensors,
    batch: Tensors,
    temperature: float | None = None,
    kind: str = Classes.name,
    parameters: Mapping[str, Mapping[str, float]] | None = None,
) -> torch.Tensor:
    """Return the weighted sum of an objective's terms, a scalar.

    :param weights: of the terms, by name.
    :param outputs: the student's, by name; :param batch: the targets, by name, and optionally
        ``weights``, float (rows,), the rows' weights.
    :param kind: what the logits are; :param parameters: of terms, by their names.
    """
    terms = TERMS | _of_kind(KINDS[kind])
    for name, arguments in (parameters or {}).items():
        terms[name] = replace(terms[name], loss=partial(terms[name].loss, **arguments))
    losses = [weight * _loss(terms[name], outputs, batch, temperature) for name, weight in weights.items()]
    return torch.stack(losses).sum()


def _loss(term: Term, outputs: Tensors, batch: Tensors, temperature: float | None) -> torch.Tensor:
    """Return a term's loss, a scalar; if rows have ``weights``, their weighted mean."""
    output, target, rows = outputs[term.output], batch[term.target], batch.get("weights")
    if rows is None:
        return term.loss(output, target, temperature)

    def of_row(row_output: torch.Tensor, row_target: torch.Tensor) -> torch.Tensor:
        return term.loss(row_output[None], row_target[None], temperature)

    each = torch.vmap(of_row)(output, target)
    return (each * rows).sum() / rows.sum().clamp_min(torch.finfo(rows.dtype).tiny)
