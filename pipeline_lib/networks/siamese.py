"""A pretrained transformers encoder that makes a vector of each sentence apart.

Barkan et al. 2019, section 3.4 (DSE, distilled sentence embedding); Vujanic and Rueckstiess 2025
(LEAF), where the vector is to have a teacher's width.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from pipeline_lib.networks.layers import mean
from pipeline_lib.networks.transformer import PretrainedLayers
from pipeline_lib.params import StudentSettings
from pipeline_lib.text.pieces import model_inputs
from pipeline_lib.text.ragged import inside


class SiameseTransformerEncoder(PretrainedLayers):
    """The means over a sentence's tokens of each of the last layers' states, concatenated.

    [CLS], the first token, is left out, since the authors saw degradations with it; that one alone,
    so that [SEP] counts as any other token does.  There is no dropout between the vector and what
    compares two of them, only the model's own.  Settings with a ``width`` put a linear map behind
    the means.

    :param words, width: of the model's input embeddings; its configuration has them too.
    :param pretrained: see :class:`PretrainedLayers`.
    """

    def __init__(
        self, words: int, width: int, settings: StudentSettings, pretrained: Mapping[str, Any]
    ) -> None:
        super().__init__(pretrained)
        self.last = settings.last
        self.frozen = settings.is_frozen
        means = self.last * self.model.config.hidden_size
        self.width = settings.width or means
        self.projection = nn.Linear(means, self.width) if settings.width else nn.Identity()
        if self.frozen:
            self.model.requires_grad_(False)
            self.eval()

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors.

        :param ids: int64 (rows, longest), padded at the end, special tokens included.
        :param lengths: int64 (rows,), at least 1; of a sentence of [CLS] alone the vector is 0.
        :returns: float (rows, width): without a map float32, the deepest layer's mean at the end.
        """
        inputs = model_inputs({"ids": ids, "lengths": lengths})
        with torch.no_grad() if self.frozen else nullcontext():
            states = self.model(**inputs, output_hidden_states=True).hidden_states[-self.last :]
        counted = inside(ids, lengths)
        counted[:, 0] = False
        # A sum of many in bfloat16 would be coarse.
        return self.projection(
            torch.cat([mean(layer.float(), counted) for layer in states], dim=-1)
        )

    def train(self, mode: bool = True) -> "SiameseTransformerEncoder":
        """Set training or evaluation; a frozen one stays in evaluation, without dropout."""
        return super().train(mode and not self.frozen)

    def attend_quickly(self, training: bool) -> None:
        """Take the layers that are quickest on this device; a frozen one only predicts."""
        super().attend_quickly(training and not self.frozen)
