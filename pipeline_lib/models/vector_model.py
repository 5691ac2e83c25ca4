"""A pretrained model that embeds sentences: the last layer's states, pooled (Wu et al. 2020, section 3.1: [CLS])."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from pipeline_lib.models.networks.layers import inside
from pipeline_lib.models.teacher import Transformer, load_pretrained


@dataclass
class VectorModel(Transformer):
    """An encoder that returns one vector per sentence.

    :ivar pooling: cls (the last layer's first state), or mean (over all tokens, special ones too).
    """

    pooling: str

    @property
    def width(self) -> int:
        """Values per vector."""
        return int(self.model.config.hidden_size)

    def forward(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the vectors of a batch of sentences, shape (rows, width)."""
        output = self.run(batch)
        if self.pooling == "cls":
            return output.last_hidden_state[:, 0]
        states = output.last_hidden_state.float()
        counted = inside(batch["ids"], batch["lengths"])[:, :, None]
        return (states * counted).sum(1) / batch["lengths"].to(states.device)[:, None]


def load_vector_model(folder: Path, device: str, precision: str, pooling: str) -> VectorModel:
    """Load an encoder from a transformers model folder; safetensors only."""
    return VectorModel.of(folder, *load_pretrained(folder, "AutoModel", {}), device, precision, pooling=pooling)
