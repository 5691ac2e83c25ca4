"""How long a sentence a transformers model can read."""

from collections.abc import Mapping
from typing import Any

OFFSET = {
    "camembert", "data2vec-text", "esm", "ibert", "layoutlmv3", "lilt", "longformer", "luke",
    "markuplm", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
"""Model types that count positions from behind the padding token's number, as RoBERTa does."""


def position_count(config: Mapping[str, Any]) -> int | None:
    """Return how many tokens a model of this configuration has positions for, or None: any number.

    :param config: what config.json holds.
    """
    total = config.get("max_position_embeddings") or config.get("n_positions")
    if not isinstance(total, int) or total < 1:
        return None
    if config.get("model_type") not in OFFSET:
        return total
    padding = config.get("pad_token_id")
    return total - (1 if padding is None else padding) - 1
