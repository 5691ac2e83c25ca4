"""How many parameters a model has, with and without its embedding tables."""

from typing import Any

import torch


def count_parameters(model: torch.nn.Module, embeddings: bool) -> int:
    """Count a module's parameters; without ``embeddings``, embedding tables are left out."""
    tables = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, torch.nn.Embedding)
        for parameter in module.parameters()
    }
    return sum(p.numel() for p in model.parameters() if embeddings or id(p) not in tables)


def parameter_counts(model: Any) -> dict[str, int]:
    """Return a teacher's or student's parameter counts, without and with embedding tables."""
    return {
        "without_embeddings": int(model.parameters(embeddings=False)),
        "with_embeddings": int(model.parameters(embeddings=True)),
    }
