"""A classifier of an encoder's mean state: dropout and one linear layer (Reimers and Gurevych 2019, section 3).

transformers has no class for it.  In its folder the encoder is as save_pretrained writes it, with ``pooling: mean`` in
config.json, and the linear layer has a file of its own.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from transformers.modeling_outputs import SequenceClassifierOutput

from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.model_config import has_pooled_head, read_config
from pipeline_lib.models.networks.layers import mean
from pipeline_lib.models.weights import check_finite

HEAD = "linear.safetensors"
DROPOUT = 0.1
"""As in the heads of Devlin et al. 2019."""


class PooledClassifier(nn.Module):
    """A transformers encoder and a linear layer over the mean of its last states; used like transformers' classifiers.

    :param encoder: its configuration says how many outputs there are.
    """

    base_model_prefix = "encoder"

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder, self.config = encoder, encoder.config
        self.config.pooling = "mean"
        self.dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Linear(self.config.hidden_size, self.config.num_labels)

    @property
    def base_model(self) -> Any:
        """The encoder."""
        return self.encoder

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.encoder.device

    def get_input_embeddings(self) -> nn.Module:
        """Return the encoder's."""
        return self.encoder.get_input_embeddings()

    def set_attn_implementation(self, name: str) -> None:
        """Set the encoder's."""
        self.encoder.set_attn_implementation(name)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **inputs: Any
    ) -> SequenceClassifierOutput:
        """Return logits, (rows, outputs), and what else ``inputs`` ask of the encoder."""
        outputs = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **inputs)
        counted = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        # A long sum in bfloat16 would lose precision.
        pooled = mean(outputs.last_hidden_state.float(), counted.float())
        return SequenceClassifierOutput(
            logits=self.classifier(self.dropout(pooled)),
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )

    def save_pretrained(self, folder: Path) -> None:
        """Write configuration and weights."""
        self.encoder.save_pretrained(folder)
        save_file(self.classifier.state_dict(), folder / HEAD)


def is_pooled(folder: Path) -> bool:
    """Whether a folder has such a classifier; without its linear layer, the folder lacks a head like any other."""
    return (folder / HEAD).exists() and has_pooled_head(read_config(folder))


def load_head(folder: Path, model: PooledClassifier) -> None:
    """Load the linear layer that :meth:`PooledClassifier.save_pretrained` wrote."""
    try:
        weights = load_file(folder / HEAD)
        model.classifier.load_state_dict(weights)
    except (SafetensorError, OSError, RuntimeError) as error:
        raise PotstillError(
            f"{folder}: {HEAD} is not the linear layer that config.json describes ({reason_of(error)}). Put both "
            "there as they were saved; `distill run` does that for a folder below data/."
        ) from error
    check_finite(folder, weights)
