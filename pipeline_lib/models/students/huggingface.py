"""Students as transformers models, for use with ``AutoModel…``, ``pipeline`` and the hub.

Importing this module registers them.
"""

from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling, SequenceClassifierOutput

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.folders import ENCODER_TYPE, MODEL_TYPE, TEMPERATURE
from pipeline_lib.models.networks.encoders import build_encoder
from pipeline_lib.models.networks.student import StudentConfig, StudentNetwork
from pipeline_lib.params import student_settings


class HubStudentConfig(PretrainedConfig):
    """A network's ``StudentConfig`` as a transformers configuration."""

    model_type = MODEL_TYPE

    def __init__(
        self,
        vocab_size: int = 0,
        embedding_size: int = 0,
        architecture: dict[str, Any] | None = None,
        pair: bool = False,
        pretrained: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if TEMPERATURE in kwargs:
            # Only a student exported for the hub has this key. Registered classes take precedence over a folder's own,
            # but only the latter apply its temperature.
            raise PotstillError(
                "this student was exported for the hub, with classes of its own. Load it by pipeline_lib.load_student, "
                "or where pipeline_lib.models.students.huggingface is not imported."
            )
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.architecture = architecture or {}
        self.pair = pair
        self.pretrained = pretrained


class StudentForSequenceClassification(PreTrainedModel):
    """A student's network with transformers' interface."""

    config_class = HubStudentConfig
    base_model_prefix = "encoder"

    def __init__(self, config: HubStudentConfig) -> None:
        super().__init__(config)
        names = [config.id2label[number] for number in range(config.num_labels)]
        settings = student_settings(config.architecture)
        sizes = config.vocab_size, config.embedding_size
        student_config = StudentConfig(*sizes, settings, config.pair, names, config.pretrained)
        network = StudentNetwork(student_config)
        # The layers are attributes of this module so that the weights have the saved names.
        self.encoder, self.hidden, self.logits = network.encoder, network.hidden, network.logits
        self._network = (network,)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Keep torch's own initialisation: students are not Transformers."""

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        input_ids_2: torch.Tensor | None = None,
        attention_mask_2: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """Return logits of shape (rows, classes), or (rows, 1) for a regression.

        :param input_ids: int64 (rows, longest), padded at the end; ``_2``: second sentences.
        :param attention_mask: 1 for words, 0 for padding.
        :param token_type_ids: which sentence a token belongs to, if one row holds both.
        """
        (network,) = self._network
        apart = input_ids_2 is not None
        second = (input_ids_2, _lengths(input_ids_2, attention_mask_2)) if apart else (None, None)
        lengths = _lengths(input_ids, attention_mask)
        outputs = network(input_ids, lengths, *second, token_type_ids)
        return SequenceClassifierOutput(logits=outputs["logits"])


class SentenceEncoderConfig(PretrainedConfig):
    """A sentence encoder's sizes, in addition to the common transformers configuration."""

    model_type = ENCODER_TYPE

    def __init__(
        self,
        vocab_size: int = 0,
        embedding_size: int = 0,
        architecture: dict[str, Any] | None = None,
        pretrained: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.architecture = architecture or {}
        self.pretrained = pretrained


class SentenceEncoderModel(PreTrainedModel):
    """A sentence encoder with transformers' interface: its vectors are the pooler's output."""

    config_class = SentenceEncoderConfig
    base_model_prefix = "encoder"

    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__(config)
        settings = student_settings(config.architecture)
        sizes = config.vocab_size, config.embedding_size
        self.encoder = build_encoder(settings, *sizes, config.pretrained)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Keep torch's own initialisation."""

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **_: Any
    ) -> BaseModelOutputWithPooling:
        """Return sentence vectors, float (rows, width), as ``pooler_output``."""
        vectors = self.encoder(input_ids, _lengths(input_ids, attention_mask))
        return BaseModelOutputWithPooling(pooler_output=vectors)


def _lengths(ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    return torch.full((len(ids),), ids.shape[1]) if mask is None else mask.sum(1).clamp(min=1)


AutoConfig.register(HubStudentConfig.model_type, HubStudentConfig)
AutoConfig.register(SentenceEncoderConfig.model_type, SentenceEncoderConfig)
AutoModel.register(SentenceEncoderConfig, SentenceEncoderModel)
AutoModelForSequenceClassification.register(HubStudentConfig, StudentForSequenceClassification)
