"""The maximum input length of a transformers model."""

from collections.abc import Mapping
from typing import Any

OFFSET = {
    "camembert", "data2vec-text", "esm", "ibert", "layoutlmv3", "lilt", "longformer", "luke",
    "markuplm", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
"""Model types whose positions start after the padding token's id, as in RoBERTa."""


def position_count(config: Mapping[str, Any]) -> int | None:
    """Return how many positions a model with this configuration has, or None if unlimited.

    :param config: the content of config.json.
    """
    if config.get("relative_attention") and not config.get("position_biased_input", True):
        # DeBERTa-v3 sees distances alone, and far ones alike.
        return None
    total = config.get("max_position_embeddings") or config.get("n_positions")
    if not isinstance(total, int) or total < 1:
        return None
    if config.get("model_type") not in OFFSET:
        return total
    padding = config.get("pad_token_id")
    return total - (1 if padding is None else padding) - 1
