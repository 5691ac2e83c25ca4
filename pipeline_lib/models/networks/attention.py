"""Self-attention registered with transformers: for short sentences on a CPU, and with its scores.

A sentence of a dozen tokens gives the usual kernels rows too short to be efficient: in a profile of
SST-2 phrases, torch's ``scaled_dot_product_attention`` took 30 % of the teacher's time.  In :func:`attend` the
softmax is computed by element-wise operations over all rows at once.  Scores, weights and sums are
float32 whatever the input's dtype, as in torch's own kernel.

TinyBERT (Jiao et al. 2020, section 3.1) compares the inputs of the softmax, which transformers'
own kernels do not expose: :func:`attend_with_scores` returns them.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask, sdpa_mask

from .layers import dropout as drop
from .packing import CURRENT, Packing

try:
    from torch.nn.attention.varlen import varlen_attn
except ImportError:  # before torch 2.10
    varlen_attn = None

WITH_SCORES = "with_scores"
NAME, NAME_IN_TRAINING = "short_sentences", "short_sentences_in_training"
LONGEST = 48
"""In tokens; beyond about this length, torch's kernel was as fast on the one processor tried."""


def give_scores(model: Any) -> None:
    """Make a transformers model return the scores before the softmax as its ``attentions``.

    :raises ValueError: if its attention cannot be replaced.
    """
    model.set_attn_implementation("sdpa")
    if model.config._attn_implementation != "sdpa":
        raise ValueError(f"a {model.config.model_type} model does not expose its attention scores")
    model.set_attn_implementation(WITH_SCORES)


def attend_with_scores(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor]:
    """Return the attention output, (rows, tokens, heads, width), and query · keyᵀ · scaling.

    The scores, (rows, heads, tokens, tokens), are those before the mask is added.

    :param query: shape (rows, heads, tokens, width), like key and value.
    :param attention_mask: added to the scores; broadcasts to their shape.
    """
    scores = query @ key.transpose(2, 3) * (scaling or query.shape[-1] ** -0.5)
    masked = scores if attention_mask is None else scores + attention_mask
    weights = drop(masked.softmax(-1), dropout, module.training)
    return (weights @ value).transpose(1, 2).contiguous(), scores


def use_short_attention(model: Any) -> None:
    """Make ``model`` use :func:`attend` where it would use torch's kernel."""
    if model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(NAME)


def use_training_attention(model: Any) -> None:
    """Let ``model`` use :func:`attend_in_training` on a CPU, where the backward pass of torch's kernel is slow."""
    if model.device.type == "cpu" and model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(NAME_IN_TRAINING)


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Return softmax(query · keyᵀ · scaling) · value, shape (rows, tokens, heads, width).

    :param query: shape (rows, heads, tokens, width), like key and value.
    :param attention_mask: bool, True where to attend; broadcasts to (rows, heads, tokens, tokens).
    """
    packing = CURRENT.get()
    if packing is not None:
        return _attend_packed(packing, query, key, value, scaling), None
    if not _is_short(module, query, key, attention_mask, dropout, kwargs):
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
    return _attend_short(query, key, value, attention_mask, scaling), None


def _attend_short(
    query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, scaling: float | None
) -> Tensor:
    rows, heads, tokens, width = query.shape
    flat = (rows * heads, tokens, width)
    queries, keys, values = (x.contiguous().float().view(flat) for x in (query, key, value))
    scores = torch.bmm(queries, keys.transpose(1, 2)).mul_(scaling or width**-0.5)
    if attention_mask is not None:
        # Not in place: the four-dimensional view broadcasts over heads.  And finite: padding that
        # attends to no token, as in a sliding window, would become NaN and propagate.
        lowest = torch.finfo(torch.float32).min
        scores = scores.view(rows, heads, tokens, tokens).masked_fill(~attention_mask, lowest)
        scores = scores.view(rows * heads, tokens, tokens)
    weights = scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    output = torch.bmm(weights.div_(weights.sum(-1, keepdim=True)), values)
    output = output.to(query.dtype).view(rows, heads, tokens, width)
    return output.transpose(1, 2).contiguous()


def _attend_packed(packing: Packing, query: Tensor, key: Tensor, value: Tensor, scaling: float | None) -> Tensor:
    """Return the attention of packed sentences, (1, tokens, heads, width)."""
    if query.is_cuda and query.dtype != torch.float32 and varlen_attn is not None:
        inputs = (x[0].transpose(0, 1) for x in (query, key, value))
        ends, longest = packing.bounds, packing.longest
        return varlen_attn(*inputs, ends, ends, longest, longest, scale=scaling)[None]

    def of_one_length(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if query.device.type == "cpu" and query.shape[2] <= LONGEST:
            return _attend_short(query, key, value, None, scaling)
        output = scaled_dot_product_attention(query, key, value, scale=scaling)
        return output.transpose(1, 2)

    return packing.attend(query, key, value, of_one_length)


def attend_in_training(*inputs: Any, **settings: Any) -> tuple[Tensor, None]:
    """Return the same as :func:`attend`, in plain operations and with fast dropout; the mask is added to the scores."""
    return attend_with_scores(*inputs, **settings)[0], None


def _is_short(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    attention_mask: Tensor | None,
    dropout: float,
    kwargs: dict[str, Any],
) -> bool:
    causal = kwargs.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    return (
        query.device.type == "cpu"
        and query.shape == key.shape
        and query.shape[2] <= LONGEST
        and not torch.is_grad_enabled()
        and not dropout
        and kwargs.get("position_bias") is None
        and (not causal or attention_mask is not None)
        and (attention_mask is None or attention_mask.dtype == torch.bool)
    )


AttentionInterface.register(WITH_SCORES, attend_with_scores)
AttentionMaskInterface.register(WITH_SCORES, eager_mask)
AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)
AttentionInterface.register(NAME_IN_TRAINING, attend_in_training)
AttentionMaskInterface.register(NAME_IN_TRAINING, eager_mask)
