"""MPNet's attention on packed sentences: transformers computes it without the usual interface.

Its scores have a bias by how far two tokens are apart (Song et al. 2020).  For one long row of
tokens, transformers would compute the bias of each token to every other one.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import scaled_dot_product_attention

if TYPE_CHECKING:
    from .packing import Packing


def let_mpnet_pack(layers: Any, packing: "Callable[[], Packing | None]") -> None:
    """Replace an ``MPNetEncoder``'s bias and attention while a batch is packed.

    :param packing: returns how the batch is packed, or None if it is padded.
    """
    layers.compute_position_bias = partial(_bias, layers.compute_position_bias, packing)
    for layer in layers.layer:
        attention = layer.attention.attn
        attention.forward = partial(_attend, attention, attention.forward, packing)


def _bias(
    usual: Callable[..., torch.Tensor], packing: "Callable[[], Packing | None]", states: torch.Tensor, *args: Any
) -> torch.Tensor:
    """Return the bias of the longest sentence, (1, heads, longest, longest), if packed."""
    how = packing()
    return usual(states if how is None else states.new_empty(1, how.longest, 0), *args)


def _attend(
    module: Any,
    usual: Callable[..., Any],
    packing: "Callable[[], Packing | None]",
    hidden_states: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    position_bias: torch.Tensor | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, ...]:
    how = packing()
    if how is None:
        return usual(hidden_states, attention_mask, position_bias, **kwargs)
    shape = (*hidden_states.shape[:-1], -1, module.attention_head_size)
    inputs = (f(hidden_states).view(shape).transpose(1, 2) for f in (module.q, module.k, module.v))

    def of_one_length(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        length = query.shape[2]
        bias = position_bias[:, :, :length, :length].to(query.dtype)
        return scaled_dot_product_attention(query, key, value, bias).transpose(1, 2)

    return (module.o(how.attend(*inputs, of_one_length).flatten(2)),)
