"""Optimisers of the training loop: which parameters decay, and the learning rate of each step."""

from typing import Any

import torch

from pipeline_lib.shards.training_records import Settings


def make_optimiser(model: torch.nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """Return AdamW over the trainable parameters, or AdaDelta with ρ = 0.95 (Tang et al. 2019, section 4.2)."""
    groups = parameter_groups(model, settings.weight_decay)
    if settings.optimiser == "adadelta":
        return torch.optim.Adadelta(groups, lr=settings.learning_rate, rho=0.95)
    return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)


def parameter_groups(model: torch.nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return the trainable parameters in two groups: those that decay, and those that do not.

    Biases and the parameters of normalisation layers do not decay, as in the code of Devlin et al.
    2019 (optimization.py).  That code goes by names; here a normalisation layer is known by its
    class, since its name is ``sa_layer_norm`` in DistilBERT and ``final_norm`` in ModernBERT.
    """
    exempt = {
        id(parameter)
        for module in model.modules()
        # DeBERTa has a class of its own, so this is not isinstance.
        if "Norm" in type(module).__name__
        for parameter in module.parameters(recurse=False)
    }
    decaying, other = [], []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            # Of MPNet, this includes the table of what is added to attention scores by distance.
            is_exempt = "bias" in name or id(parameter) in exempt
            (other if is_exempt else decaying).append(parameter)
    groups = ({"params": decaying, "weight_decay": weight_decay}, {"params": other, "weight_decay": 0.0})
    return [group for group in groups if group["params"]]


def set_rate(optimiser: torch.optim.Optimizer, settings: Settings, step: int, total: int) -> None:
    """Set the learning rate of ``step`` (from 0) of ``total``."""
    factor = rate_factor(settings.schedule, settings.warmup, step, total)
    for group in optimiser.param_groups:
        group["lr"] = settings.learning_rate * factor


def rate_factor(schedule: str, warmup: float, step: int, total: int) -> float:
    """Return the rate's multiplier at a step: rising over the first ``warmup`` share, then constant or falling."""
    rising = warmup * total
    if step < rising:
        return (step + 1) / (rising + 1)
    return 1.0 if schedule == "constant" else (total - step) / max(1.0, total - rising)
