"""A student's network in plain torch: encoder, a ReLU layer where it has one, and the outputs.

Training, scoring and predicting need no more than this: importing transformers takes longer than
predicting a thousand sentences.  :mod:`pipeline_lib.students.huggingface` makes the same a
transformers model.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from pipeline_lib.networks.encoders import build_encoder
from pipeline_lib.params import StudentSettings
from pipeline_lib.text.ragged import PAD_ID


@dataclass(frozen=True)
class StudentConfig:
    """What a student is made of.

    :ivar vocab_size: words of its vocabulary; :ivar embedding_size: values per word vector.
    :ivar settings: the row of ``students`` in params.yaml (architecture and sizes).
    :ivar pair: whether it compares two sentences.
    :ivar label_names: names of the classes, or of the score of a regression.
    """

    vocab_size: int
    embedding_size: int
    settings: StudentSettings
    pair: bool
    label_names: list[str]


class StudentNetwork(nn.Module):
    """An encoder, a ReLU layer where it has one, and the logits, or the score of a regression.

    Of a pair one encoder reads both sentences, and what the ReLU layer sees is :func:`compare`
    (Tang et al. 2019, section 3.1, figures 1 and 2).
    """

    def __init__(self, config: StudentConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = build_encoder(config.settings, config.vocab_size, config.embedding_size)
        width = self.encoder.width * (4 if config.pair else 1)
        units = config.settings.classifier_units
        self.hidden = nn.Sequential(nn.Linear(width, units), nn.ReLU()) if units else nn.Identity()
        self.logits = nn.Linear(units or width, len(config.label_names))

    def forward(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor,
        ids_2: torch.Tensor | None = None,
        lengths_2: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """Return the named outputs: ``logits`` (rows, classes), of a regression (rows, 1).

        ``vector`` (rows, width) is what the encoder makes of a sentence; of a pair, of the first.

        :param ids: int64 (rows, longest), padded at the end; :param lengths: words per row.
        :param ids_2: the second sentences of pairs; :param lengths_2: their words per row.
        """
        if self.config.pair:
            # As one batch: half the steps of an LSTM, one gradient of the word vectors for two.
            both = self.encoder(stack(ids, ids_2), torch.cat([lengths, lengths_2]))
            vector, second = both.chunk(2)
            features = compare(vector, second)
        else:
            vector = features = self.encoder(ids, lengths)
        return {"logits": self.logits(self.hidden(features)), "vector": vector}

    def outputs(self, batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the named outputs for a batch of :class:`~pipeline_lib.text.ragged.Sentences`."""
        second = (batch["ids_2"], batch["lengths_2"]) if self.config.pair else ()
        return self(batch["ids"], batch["lengths"], *second)


def stack(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return the rows of ``first`` above those of ``second``, the narrower ones padded."""
    columns = max(first.shape[1], second.shape[1])
    return torch.cat(
        [
            nn.functional.pad(ids, (0, columns - ids.shape[1]), value=PAD_ID)
            for ids in (first, second)
        ]
    )


def compare(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return [h1, h2, h1 ⊙ h2, |h1 − h2|] (Tang et al. 2019, section 3.1), (rows, 4 · width)."""
    return torch.cat([first, second, first * second, (first - second).abs()], dim=-1)
