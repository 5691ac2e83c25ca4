"""A few layers of a pretrained transformers encoder as a student, or a small BERT of its own size.

Liu 2020, section 4.1.3 (MKD-Transformer), Sun et al. 2019 (BERT-PKD), and Jiao et al. 2020
(TinyBERT).  transformers is imported only where it is used: other students do not need it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from .layers import Dropout, Settings, model_inputs

DROPOUTS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "dropout",
    "attention_dropout",
    "mlp_dropout",
    "embedding_dropout",
)
"""Configurations' names for dropout; from the third on, those of DistilBERT and ModernBERT."""
HEADS = ("_name_or_path", "architectures", "id2label", "label2id", "problem_type")
"""Configuration keys about the model's origin or about a head, neither of which is kept."""


class PretrainedLayers(nn.Module):
    """The embeddings and some layers of a pretrained encoder.

    :param pretrained: the configuration that :func:`cut` returned, or that of a new model.
    :cvar frozen: whether it is not trained.
    """

    frozen = False

    def __init__(self, pretrained: Mapping[str, Any]) -> None:
        from transformers import AutoConfig, AutoModel

        super().__init__()
        self.model = AutoModel.from_config(AutoConfig.for_model(**pretrained))
        _drop_pooler(self.model)


class TransformerReader(PretrainedLayers):
    """Layers that read a whole input at once, and a pool over their [CLS] states; see :class:`PretrainedLayers`."""

    def __init__(self, words: int, width: int, settings: Settings, pretrained: Mapping[str, Any]) -> None:
        super().__init__(pretrained)
        self.pool = settings.pool
        rates = [pretrained[name] for name in DROPOUTS if name in pretrained]
        self.dropout = Dropout(rates[0] if rates else 0.0)
        self.width = self.model.config.hidden_size
        self.gives_scores = False

    def forward(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor,
        ids_2: torch.Tensor | None = None,
        lengths_2: torch.Tensor | None = None,
        segments: torch.Tensor | None = None,
    ) -> dict[str, Any]:
        """Return the named outputs ``vector`` (rows, width) and ``states`` (rows, layers, width).

        ``states`` holds each layer's state of the first token, [CLS]; ``vector`` is their mean (Liu
        2020, section 4.1.3), or the last one (Sun et al. 2019).  ``hidden`` has the states of all
        tokens, for the embeddings and for each layer, and ``attentions`` each layer's attention
        scores, once :attr:`gives_scores` is set and the model returns them.

        :param ids: int64 (rows, longest), padded at the end, special tokens included; for a pair, both sentences.
        :param lengths: int64 (rows,).  :param ids_2: not used; :param lengths_2: not used.
        :param segments: which sentence each token belongs to, for models with token types.
        """
        batch = {"ids": ids, "lengths": lengths, "segments": segments}
        options = {"output_hidden_states": True, "output_attentions": self.gives_scores}
        result = self.model(**model_inputs(batch), **options)
        # The first of them are the embeddings.
        states = torch.stack([layer[:, 0] for layer in result.hidden_states[1:]], dim=1)
        vector = states[:, -1] if self.pool == "last" else states.mean(1)
        outputs = {"vector": self.dropout(vector), "states": states, "hidden": result.hidden_states}
        return outputs | ({"attentions": result.attentions} if self.gives_scores else {})

    def outputs(self, batch: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """Return the named outputs for a batch of :class:`~pipeline_lib.text.ragged.Sentences`."""
        return self(batch["ids"], batch["lengths"], segments=batch.get("segments"))


def cut(model: Any, layers: Sequence[int] | None, dropout: float | None) -> dict[str, Any]:
    """Keep only some layers of a transformers encoder, in place; return its configuration.

    :param layers: their indices, from 0, in their new order; None: keep all.
    :param dropout: the probability to set everywhere; None: keep its own.
    :raises ValueError: if it has no list of layers, or these do not work in this order.
    """
    if layers is not None:
        _keep_layers(model, layers)
    _drop_pooler(model)
    config = json.loads(model.config.to_json_string(use_diff=False))
    if dropout is not None:
        config |= {name: dropout for name in DROPOUTS if name in config}
    config = {name: value for name, value in config.items() if name not in HEADS}
    if layers is not None:
        _check_rebuilt(model, config)
    return config


def _keep_layers(model: Any, numbers: Sequence[int]) -> None:
    count = model.config.num_hidden_layers
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    whole = [module for module in lists if len(module) == count]
    if not whole:
        raise ValueError(f"a {model.config.model_type} has no list of its {count} layers")
    chosen = [whole[0][number] for number in numbers]
    del whole[0][:]
    whole[0].extend(chosen)
    # ModernBERT's layers attend globally or locally, as the configuration says for each.
    if types := getattr(model.config, "layer_types", None):
        model.config.layer_types = [types[number] for number in numbers]
    model.config.num_hidden_layers = len(chosen)


def _check_rebuilt(model: Any, configuration: Mapping[str, Any]) -> None:
    """Check that a model of this configuration has the same tensors: ModernBERT's first layer is unlike others."""
    with torch.device("meta"):
        again = PretrainedLayers(configuration).model
    expected, left = ({n: t.shape for n, t in m.state_dict().items()} for m in (again, model))
    if other := sorted(expected.items() ^ left.items()):
        raise ValueError(
            f"in this order {other[0][0]} would be missing or of another shape: its layers are not all alike"
        )


def bert_configuration(settings: Settings, words: int, padding: int, segments: int) -> dict[str, Any]:
    """Return transformers' configuration of a BERT of a student's size; ``segments`` is the number of token types."""
    return {
        "model_type": "bert",
        "vocab_size": words,
        "hidden_size": settings.width,
        "num_hidden_layers": settings.depth,
        "num_attention_heads": settings.heads,
        "intermediate_size": settings.feedforward,
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": settings.dropout,
        "max_position_embeddings": settings.max_words,
        "type_vocab_size": segments,
        "pad_token_id": padding,
    }


def _drop_pooler(model: Any) -> None:
    # Nothing uses its output, so its weights would only take up space.
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
