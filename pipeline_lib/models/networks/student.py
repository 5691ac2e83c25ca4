"""A student's network in plain torch: an encoder, an optional ReLU layer, and the outputs.

Training, scoring and prediction need no more than this: importing transformers takes longer than predicting a
thousand sentences.  In an export, :mod:`distilled_student` wraps the same network as a transformers model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .architectures import build_encoder
from .layers import Settings, stack

ENCODED = ("encoded", "encoded_2")
"""Batch columns with precomputed vectors of the sentence, and of a pair's second sentence."""


@dataclass(frozen=True)
class StudentConfig:
    """Everything needed to build a student's network.

    :ivar vocab_size: words in its vocabulary; :ivar embedding_size: values per word vector.
    :ivar settings: the row of ``students`` in params.yaml (architecture and sizes).
    :ivar pair: whether it compares two sentences.
    :ivar label_names: names of the classes, or of the score of a regression.
    :ivar pretrained: its encoder's configuration, if that is a transformers model.
    :ivar kind: the kind of its task; None: as its outputs say.
    """

    vocab_size: int
    embedding_size: int
    settings: Settings
    pair: bool
    label_names: list[str]
    pretrained: Mapping[str, Any] | None = None
    kind: str | None = None


class StudentNetwork(nn.Module):
    """An encoder, an optional ReLU layer, and the logits, or a regression's score.

    For a pair, one encoder reads the sentences separately, and the ReLU layer's input is :func:`compare` (Tang et
    al. 2019, section 3.1, figures 1 and 2); if the settings are ``joint``, the encoder reads both at once.
    """

    def __init__(self, config: StudentConfig) -> None:
        super().__init__()
        self.config = config
        sizes = config.vocab_size, config.embedding_size
        self.encoder = build_encoder(config.settings, *sizes, config.pretrained)
        compares = config.pair and not config.settings.joint
        width = self.encoder.width * (4 if compares else 1)
        units = config.settings.classifier_units
        self.hidden = nn.Sequential(nn.Linear(width, units), nn.ReLU()) if units else nn.Identity()
        self.logits = nn.Linear(units or width, len(config.label_names))

    def forward(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor,
        ids_2: torch.Tensor | None = None,
        lengths_2: torch.Tensor | None = None,
        segments: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """Return the named outputs: ``logits`` (rows, classes), or (rows, 1) for a regression.

        ``vector`` (rows, width) is the encoder's output for a sentence; for a pair, that of the first sentence, or
        of both if it reads them at once.  A transformer also returns its ``states`` (rows, layers, width).

        :param ids: int64 (rows, longest), padded at the end; :param lengths: words per row.
        :param ids_2: the second sentences of pairs; :param lengths_2: their words per row.
        :param segments: which sentence each of ``ids`` belongs to, if one row holds both.
        """
        if self.config.settings.joint:
            outputs = self.encoder(ids, lengths, ids_2, lengths_2, segments)
            return {"logits": self.logits(self.hidden(outputs["vector"])), **outputs}
        if not self.config.pair:
            return self.outputs_of_vectors(self.encoder(ids, lengths))
        # One batch for both: half the LSTM steps, and one gradient of the word vectors, not two.
        both = self.encoder(stack(ids, ids_2), torch.cat([lengths, lengths_2]))
        return self.outputs_of_vectors(*both.chunk(2))

    def outputs_of_vectors(self, first: torch.Tensor, second: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        """Return the named outputs for sentence vectors, float (rows, width): the head, without the encoder."""
        features = first if second is None else compare(first, second)
        return {"logits": self.logits(self.hidden(features)), "vector": first}

    def outputs(self, batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the named outputs for a batch of :class:`~pipeline_lib.text.ragged.Sentences`.

        If the batch has the columns :data:`ENCODED`, the encoder is skipped.
        """
        if ENCODED[0] in batch:
            return self.outputs_of_vectors(*(batch[name] for name in ENCODED if name in batch))
        names = ("ids_2", "lengths_2", "segments")
        return self(batch["ids"], batch["lengths"], *(batch.get(name) for name in names))


def compare(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return [h1, h2, h1 ⊙ h2, |h1 − h2|] (Tang et al. 2019, section 3.1), (rows, 4 · width)."""
    return torch.cat([first, second, first * second, (first - second).abs()], dim=-1)
