"""The students' transformers classes: a configuration, and a classifier of encoder and head."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from pipeline_lib.students.encoders import ENCODERS


class StudentConfig(PretrainedConfig):
    """What a student is made of.

    :param vocab_size: words of its vocabulary; :param embedding_size: values per word vector.
    :param architecture: the row of ``students`` in params.yaml (architecture and sizes).
    :param pair: whether it compares two sentences.
    """

    model_type = "distillery_student"

    def __init__(
        self,
        vocab_size: int = 0,
        embedding_size: int = 0,
        architecture: dict[str, Any] | None = None,
        pair: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.architecture = architecture or {}
        self.pair = pair


class StudentForSequenceClassification(PreTrainedModel):
    """An encoder, a ReLU layer where it has one, and the logits, or the score of a regression.

    Of a pair one encoder reads both sentences, and what the ReLU layer sees is :func:`compare`
    (Tang et al. 2019, section 3.1, figures 1 and 2).
    """

    config_class = StudentConfig
    base_model_prefix = "encoder"

    def __init__(self, config: StudentConfig) -> None:
        super().__init__(config)
        settings = config.architecture
        build = ENCODERS[settings["architecture"]]
        self.encoder = build(config.vocab_size, config.embedding_size, settings)
        width = self.encoder.width * (4 if config.pair else 1)
        units = settings.get("classifier")
        self.hidden = nn.Sequential(nn.Linear(width, units), nn.ReLU()) if units else nn.Identity()
        self.logits = nn.Linear(units or width, config.num_labels)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Keep torch's own initialisation: the students are no transformers."""

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        lengths: torch.Tensor | None = None,
        input_ids_2: torch.Tensor | None = None,
        lengths_2: torch.Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """Return logits of shape (rows, classes), or (rows, 1) of a regression.

        :param input_ids: int64 (rows, longest), padded at the end.
        :param attention_mask: 1 for words, 0 for padding; or give :param lengths: words per row.
        :param input_ids_2: the second sentences of pairs; :param lengths_2: their words per row.
        """
        if lengths is None:
            longest = torch.full((len(input_ids),), input_ids.shape[1])
            lengths = longest if attention_mask is None else attention_mask.sum(1).clamp(min=1)
        features = self.encoder(input_ids, lengths)
        if self.config.pair:
            features = compare(features, self.encoder(input_ids_2, lengths_2))
        return SequenceClassifierOutput(logits=self.logits(self.hidden(features)))

    def outputs(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the outputs for a batch of :class:`~pipeline_lib.batching.Sentences`."""
        second = {}
        if self.config.pair:
            second = {"input_ids_2": batch["ids_2"], "lengths_2": batch["lengths_2"]}
        return self(batch["ids"], lengths=batch["lengths"], **second).logits


def compare(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return [h1, h2, h1 ⊙ h2, |h1 − h2|] (Tang et al. 2019, section 3.1), (rows, 4 · width)."""
    return torch.cat([first, second, first * second, (first - second).abs()], dim=-1)


AutoConfig.register(StudentConfig.model_type, StudentConfig)
AutoModelForSequenceClassification.register(StudentConfig, StudentForSequenceClassification)
