"""A pretrained transformers encoder that embeds each sentence separately.

Barkan et al. 2019, section 3.4 (DSE, distilled sentence embedding); Vujanic and Rueckstiess 2025
(LEAF) if the vector is mapped to a teacher's width.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from .inputs import inside, model_inputs
from .layers import Settings, mean
from .transformer import PretrainedLayers


class SiameseTransformerEncoder(PretrainedLayers):
    """The last layers' states, each averaged over the sentence's tokens, concatenated.

    Only [CLS], the first token, is left out, since the authors saw degradations with it; [SEP]
    counts like any other token.  There is no dropout between the vectors and their comparison, only
    the model's own.  Settings with a ``width`` add a linear map after the means.

    :param words, width: of the model's input embeddings; its configuration has them too.
    :param pretrained: see :class:`PretrainedLayers`.
    """

    def __init__(
        self, words: int, width: int, settings: Settings, pretrained: Mapping[str, Any]
    ) -> None:
        super().__init__(pretrained)
        self.last = settings.last
        self.frozen = settings.frozen
        means = self.last * self.model.config.hidden_size
        self.width = settings.width or means
        self.projection = nn.Linear(means, self.width) if settings.width else nn.Identity()
        if self.frozen:
            self.model.requires_grad_(False)
            self.eval()

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors.

        :param ids: int64 (rows, longest), padded at the end, special tokens included.
        :param lengths: int64 (rows,), at least 1; a sentence that is only [CLS] gets zero means.
        :returns: float (rows, width); without a map float32, with the top layer's mean last.
        """
        inputs = model_inputs({"ids": ids, "lengths": lengths})
        with torch.no_grad() if self.frozen else nullcontext():
            states = self.model(**inputs, output_hidden_states=True).hidden_states[-self.last :]
        counted = inside(ids, lengths)
        counted[:, 0] = False
        # A long sum in bfloat16 would lose precision.
        means = torch.cat([mean(layer.float(), counted) for layer in states], dim=-1)
        if isinstance(self.projection, nn.Linear):  # which half() and bfloat16() convert
            means = means.to(self.projection.weight.dtype)
        return self.projection(means)

    def train(self, mode: bool = True) -> "SiameseTransformerEncoder":
        """Set training or evaluation mode; a frozen encoder always stays in evaluation mode."""
        return super().train(mode and not self.frozen)
