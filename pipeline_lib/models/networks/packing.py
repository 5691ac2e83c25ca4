"""Sentences computed without padding: a batch as one long row of tokens.

All that a Transformer's layers do but attention is done token by token.  So a batch is packed
before the first layer, each sentence attends within itself, and the last layer's states are padded
again, for whatever reads them.  The embeddings are computed on padded ids: they cost little.

Of the default's transfer set, in shards of 2,000 rows, half of a batch of 65,536 tokens is padding.

MPNet needs functions of its own: its scores have a bias by how far two tokens are apart (Song et al. 2020), and
transformers computes them without the usual interface, for one long row of tokens the bias of each to every other one.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Queries, keys and values, (rows, heads, tokens, width), to the output, (rows, tokens, ...)."""


@dataclass(frozen=True)
class Packing:
    """How a batch is packed.

    :ivar lengths: tokens of each sentence, int64 (rows,), on the CPU; sentences of one length are neighbours.
    :ivar device: where the batch is.
    """

    lengths: Tensor
    device: torch.device

    @cached_property
    def longest(self) -> int:
        """The length of the longest sentence."""
        return int(self.lengths.max())

    @cached_property
    def runs(self) -> list[tuple[int, int]]:
        """The sentences by length, as (sentences, length)."""
        lengths, counts = torch.unique_consecutive(self.lengths, return_counts=True)
        return list(zip(counts.tolist(), lengths.tolist(), strict=True))

    @cached_property
    def bounds(self) -> Tensor:
        """Where each sentence begins among the tokens, and the last one ends, int32 (rows + 1,)."""
        bounds = torch.zeros(len(self.lengths) + 1, dtype=torch.int32)
        torch.cumsum(self.lengths, 0, out=bounds[1:])
        return bounds.to(self.device, non_blocking=True)

    @cached_property
    def indices(self) -> Tensor:
        """Where the tokens are in the padded batch, flat, int64 (tokens,)."""
        tokens = int(self.lengths.sum())
        lengths = self.lengths.to(self.device, non_blocking=True)
        padding = torch.arange(len(lengths), device=self.device) * self.longest - self.bounds[:-1]
        # The number of tokens is known here: nothing waits for the device.
        before = torch.repeat_interleave(padding, lengths, output_size=tokens)
        return before + torch.arange(tokens, device=self.device)

    def pack(self, states: Tensor) -> Tensor:
        """Return (rows, longest, width) as (1, tokens, width)."""
        return states.flatten(0, 1).index_select(0, self.indices)[None]

    def pad(self, states: Tensor) -> Tensor:
        """Return (1, tokens, width) as (rows, longest, width), with zeros for padding."""
        padded = states.new_zeros(len(self.lengths) * self.longest, states.shape[-1])
        padded.index_copy_(0, self.indices, states[0])
        return padded.view(len(self.lengths), self.longest, -1)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, attention: Attention) -> Tensor:
        """Return what each sentence's attention to itself gives, (1, tokens, heads, width).

        :param query: shape (1, heads, tokens, width), like key and value.
        :param attention: of sentences of one length.
        """
        heads, width = query.shape[1], query.shape[3]
        by_token = [x[0].transpose(0, 1) for x in (query, key, value)]
        output, start = query.new_empty(query.shape[2], heads, width), 0
        for sentences, length in self.runs:
            run = slice(start, start + sentences * length)
            inputs = (x[run].view(sentences, length, heads, width) for x in by_token)
            attended = attention(*(x.transpose(1, 2) for x in inputs))
            output[run] = attended.reshape(-1, heads, width)
            start = run.stop
        return output[None]


CURRENT: ContextVar[Packing | None] = ContextVar("packing", default=None)
"""How the batch that is being computed is packed; None: it is padded."""


@contextmanager
def packed(batch: Mapping[str, Tensor]) -> Iterator[None]:
    """Let models compute a batch of ragged sentences, sorted by length, packed within the block."""
    token = CURRENT.set(Packing(batch["lengths"], batch["ids"].device))
    try:
        yield
    finally:
        CURRENT.reset(token)


def let_pack(model: Any) -> None:
    """Let a transformers model compute packed batches, if its layers are where usual; the caller tries the answers."""
    base = model.base_model
    layers = getattr(base, "encoder", None) or getattr(base, "transformer", None)
    if layers is None:
        return
    layers.register_forward_pre_hook(_pack, with_kwargs=True)
    layers.register_forward_hook(_pad)
    if model.config.model_type == "mpnet":
        _let_mpnet_pack(layers)


def _pack(_: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
    packing = CURRENT.get()
    if packing is None:
        return None
    kwargs = dict(kwargs)
    states, _ = kwargs.pop("hidden_states", None), kwargs.pop("attention_mask", None)
    return (packing.pack(args[0] if states is None else states),), kwargs


def _pad(_: Any, __: Any, output: Any) -> Any:
    packing = CURRENT.get()
    if packing is not None:
        output["last_hidden_state"] = packing.pad(output.last_hidden_state)
    return output


def _let_mpnet_pack(layers: Any) -> None:
    """Replace an ``MPNetEncoder``'s bias and attention while a batch is packed."""
    layers.compute_position_bias = partial(_bias, layers.compute_position_bias)
    for layer in layers.layer:
        attention = layer.attention.attn
        attention.forward = partial(_attend, attention, attention.forward)


def _bias(usual: Callable[..., Tensor], states: Tensor, *args: Any) -> Tensor:
    """Return the bias of the longest sentence, (1, heads, longest, longest), if packed."""
    packing = CURRENT.get()
    return usual(states if packing is None else states.new_empty(1, packing.longest, 0), *args)


def _attend(
    module: Any,
    usual: Callable[..., Any],
    hidden_states: Tensor,
    attention_mask: Tensor | None = None,
    position_bias: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, ...]:
    packing = CURRENT.get()
    if packing is None:
        return usual(hidden_states, attention_mask, position_bias, **kwargs)
    shape = (*hidden_states.shape[:-1], -1, module.attention_head_size)
    inputs = (f(hidden_states).view(shape).transpose(1, 2) for f in (module.q, module.k, module.v))

    def of_one_length(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        length = query.shape[2]
        bias = position_bias[:, :, :length, :length].to(query.dtype)
        return scaled_dot_product_attention(query, key, value, bias).transpose(1, 2)

    return (module.o(packing.attend(*inputs, of_one_length).flatten(2)),)
