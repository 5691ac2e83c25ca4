"""A pretrained transformers encoder that embeds each sentence separately.

Barkan et al. 2019, section 3.4 (DSE, distilled sentence embedding); Vujanic and Rueckstiess 2025
(LEAF) if the vector is mapped to a teacher's width.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from .layers import Settings, inside, mean, model_inputs
from .transformer import PretrainedLayers


class SiameseTransformerEncoder(PretrainedLayers):
    """The last layers' states, each averaged over the sentence's tokens, concatenated.

    Only [CLS], the first token, is left out, since the authors saw degradations with it; [SEP]
    counts like any other token.  With ``pooling: cls``, the states of [CLS] take the place of the
    means.  There is no dropout between the vectors and their comparison, only the model's own.
    Settings with a ``width`` add a linear map after the concatenation.

    :param words, width: of the model's input embeddings; its configuration has them too.
    :param pretrained: see :class:`PretrainedLayers`.
    """

    def __init__(self, words: int, width: int, settings: Settings, pretrained: Mapping[str, Any]) -> None:
        super().__init__(pretrained)
        self.last, self.pooling = settings.last, settings.pooling
        self.frozen = settings.frozen
        pooled = self.last * self.model.config.hidden_size
        self.width = settings.width or pooled
        self.projection = nn.Linear(pooled, self.width) if settings.width else nn.Identity()
        if self.frozen:
            self.model.requires_grad_(False)
            self.eval()

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors.

        :param ids: int64 (rows, longest), padded at the end, special tokens included.
        :param lengths: int64 (rows,), at least 1; a sentence that is only [CLS] gets zero means.
        :returns: float (rows, width); without a map float32, with the top layer's values last.
        """
        inputs = model_inputs({"ids": ids, "lengths": lengths})
        with torch.no_grad() if self.frozen else nullcontext():
            states = self.model(**inputs, output_hidden_states=True).hidden_states
        return self.vectors(states, inside(ids, lengths))

    def vectors(self, states: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors; see :meth:`forward`.

        :param states: of the embeddings and of each layer, (rows, longest, width).
        :param mask: 0 or False for padding, (rows, longest).
        """
        # A long sum in bfloat16 would lose precision.
        last = [layer.float() for layer in states[-self.last :]]
        if self.pooling == "cls":
            pooled = torch.cat([layer[:, 0] for layer in last], dim=-1)
        else:
            counted = torch.cat([torch.zeros_like(mask[:, :1]), mask[:, 1:]], dim=1)
            pooled = torch.cat([mean(layer, counted) for layer in last], dim=-1)
        if isinstance(self.projection, nn.Linear):  # which half() and bfloat16() convert
            pooled = pooled.to(self.projection.weight.dtype)
        return self.projection(pooled)

    def train(self, mode: bool = True) -> "SiameseTransformerEncoder":
        """Set training or evaluation mode; a frozen encoder always stays in evaluation mode."""
        return super().train(mode and not self.frozen)
