"""What a transformers model's configuration says of its layers: families name it differently."""

from collections.abc import Mapping
from typing import Any


def layer_count(config: Mapping[str, Any]) -> int | None:
    """Return how many layers a model has, or None where its configuration does not say.

    :param config: what config.json holds.
    """
    return config.get("num_hidden_layers") or config.get("n_layers")


def head_count(config: Mapping[str, Any]) -> int | None:
    """Return how many heads a layer's attention has, or None."""
    return config.get("num_attention_heads") or config.get("n_heads")


def layer_width(config: Mapping[str, Any]) -> int | None:
    """Return how many values a layer's state has, or None where the configuration does not say."""
    return config.get("hidden_size") or config.get("dim")
