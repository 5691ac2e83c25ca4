"""A model's weights: whether they are its folder's, for transformers makes up what a file lacks, and how many they are.

Only the head that a model is to be tuned with may be new, and the pooler, which nobody reads.
"""

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.errors import PotstillError

if TYPE_CHECKING:
    import torch


_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


def check_loaded(folder: Path, model: Any, info: Mapping[str, Any], new_head: bool) -> None:
    """Check that a model's weights are those of its folder.

    :param info: what transformers says of the loading: missing, unexpected and mismatched keys.
    :param new_head: whether the head is to be tuned, and may be new.
    """
    prefix = f"{model.base_model_prefix}."
    is_encoder = model.base_model is model

    def may_be_new(name: str) -> bool:
        return "pooler" in name or (new_head and not is_encoder and not name.startswith(prefix))

    missing = [name for name in sorted(info["missing_keys"]) if not may_be_new(name)]
    if missing:
        there = _some(info["unexpected_keys"])
        instead = f", but {there}" if there else ""
        raise PotstillError(
            f"{folder}: its weights lack {_some(missing)}{instead}. The file is another model's, "
            "or was saved by another library: save it again with save_pretrained."
        )
    others = [(name, *shapes) for name, *shapes in info["mismatched_keys"] if not may_be_new(name)]
    if others:
        name, stored, configured = sorted(others, key=str)[0]
        raise PotstillError(
            f"{folder}: {name} has the shape {tuple(stored)} in its weights, and {tuple(configured)} by config.json "
            f"({len(others):,} such tensors). Put the config.json there that the weights were saved with."
        )
    patterns = {_NUMBER.sub("#", name.removeprefix(prefix)) for name in model.state_dict()}
    surplus = [
        name
        for name in info["unexpected_keys"]
        if (pattern := _NUMBER.sub("#", name.removeprefix(prefix))) in patterns and "#" in pattern
    ]
    if surplus:
        raise PotstillError(
            f"{folder}: its weights have {_some(surplus)}, for which config.json has no layer. Put "
            "the config.json there that the weights were saved with."
        )
    check_finite(folder, dict(model.named_parameters()))


def check_finite(folder: Path, weights: Mapping[str, Any]) -> None:
    """Check that no weight, an array of numpy or torch by its name, is NaN or infinite."""
    broken = [
        name
        for name, values in weights.items()
        if 0 not in values.shape and not math.isfinite(abs(values).max().item())
    ]
    if broken:
        raise PotstillError(
            f"{folder}: its weights have NaN or infinite values, in {_some(broken)}. Put an intact "
            "model.safetensors there; `distill run` does that for one below data/."
        )


def _some(names: Iterable[str]) -> str:
    """Return the first of some names, and how many more there are."""
    ordered = sorted(names)
    return f"{ordered[0]} and {len(ordered) - 1:,} more" if ordered[1:] else "".join(ordered)


def count_parameters(model: "torch.nn.Module", embeddings: bool) -> int:
    """Count a module's parameters; without ``embeddings``, embedding tables are left out."""
    import torch

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
