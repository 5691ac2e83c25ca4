"""The students' transformers classes: a configuration, and a classifier of encoder and head."""

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
    """

    model_type = "distillery_student"

    def __init__(
        self,
        vocab_size: int = 0,
        embedding_size: int = 0,
        architecture: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.architecture = architecture or {}


class StudentForSequenceClassification(PreTrainedModel):
    """An encoder, a ReLU layer and the logits (Tang et al. 2019, figure 1)."""

    config_class = StudentConfig
    base_model_prefix = "encoder"

    def __init__(self, config: StudentConfig) -> None:
        super().__init__(config)
        settings = config.architecture
        build = ENCODERS[settings["architecture"]]
        self.encoder = build(config.vocab_size, config.embedding_size, settings)
        self.hidden = nn.Linear(self.encoder.width, settings["classifier"])
        self.logits = nn.Linear(settings["classifier"], config.num_labels)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Keep torch's own initialisation: the students are no transformers."""

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        lengths: torch.Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """Return logits of shape (rows, classes).

        :param input_ids: int64 (rows, longest), padded at the end.
        :param attention_mask: 1 for words, 0 for padding; or give :param lengths: words per row.
        """
        if lengths is None:
            longest = torch.full((len(input_ids),), input_ids.shape[1])
            lengths = longest if attention_mask is None else attention_mask.sum(1).clamp(min=1)
        sentence = self.encoder(input_ids, lengths)
        return SequenceClassifierOutput(logits=self.logits(torch.relu(self.hidden(sentence))))


AutoConfig.register(StudentConfig.model_type, StudentConfig)
AutoModelForSequenceClassification.register(StudentConfig, StudentForSequenceClassification)
