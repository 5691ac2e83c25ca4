"""Attention that also returns its scores, registered with transformers.

TinyBERT (Jiao et al. 2020, section 3.1) compares the inputs of the softmax, which transformers'
own kernels do not expose.
"""

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from .dropout import dropout as drop

NAME = "with_scores"


def give_scores(model: Any) -> None:
    """Make a transformers model return the scores before the softmax as its ``attentions``.

    :raises ValueError: if its attention cannot be replaced.
    """
    model.set_attn_implementation("sdpa")
    if model.config._attn_implementation != "sdpa":
        raise ValueError(f"a {model.config.model_type} model does not expose its attention scores")
    model.set_attn_implementation(NAME)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the attention output, (rows, tokens, heads, width), and query · keyᵀ · scaling.

    The scores, (rows, heads, tokens, tokens), are those before the mask is added.

    :param query: shape (rows, heads, tokens, width), like key and value.
    :param attention_mask: added to the scores; broadcasts to their shape.
    """
    scores = query @ key.transpose(2, 3) * (scaling or query.shape[-1] ** -0.5)
    masked = scores if attention_mask is None else scores + attention_mask
    weights = drop(masked.softmax(-1), dropout, module.training)
    return (weights @ value).transpose(1, 2).contiguous(), scores


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, eager_mask)
