"""Layer counts and sizes from transformers configurations, whose keys differ between families."""

from collections.abc import Mapping
from typing import Any


def layer_count(config: Mapping[str, Any]) -> int | None:
    """Return how many layers a model has, or None if its configuration does not say.

    :param config: the content of config.json.
    """
    return config.get("num_hidden_layers") or config.get("n_layers")


def head_count(config: Mapping[str, Any]) -> int | None:
    """Return how many heads a layer's attention has, or None."""
    return config.get("num_attention_heads") or config.get("n_heads")


def layer_width(config: Mapping[str, Any]) -> int | None:
    """Return the size of a layer's hidden state, or None if the configuration does not say."""
    return config.get("hidden_size") or config.get("dim")


def embedding_width(config: Mapping[str, Any]) -> int | None:
    """Return the size of a word piece's embedding, or None if the configuration does not say."""
    return config.get("embedding_size") or layer_width(config)
