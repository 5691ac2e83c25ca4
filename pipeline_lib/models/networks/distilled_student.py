"""A distilled student as a model of transformers, of single sentences or of pairs.

    AutoModelForSequenceClassification.from_pretrained("folder", trust_remote_code=True)
    pipeline("text-classification", "folder", trust_remote_code=True)("A sentence.")

This file and those that it imports are copied into an exported folder: they are the code that
``trust_remote_code`` runs, and need only torch and transformers.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import SequenceClassifierOutput

# Some releases of transformers copy only the files that this one names, not those that they name.
from .architectures import build_encoder  # noqa: F401
from .biattentive import BiAttentiveReader  # noqa: F401
from .encoders import BiLSTMEncoder  # noqa: F401
from .layers import (
    Dropout,  # noqa: F401
    WordEmbeddings,  # noqa: F401
    inside,
)
from .siamese import SiameseTransformerEncoder  # noqa: F401
from .student import StudentConfig, StudentNetwork
from .transformer import TransformerReader  # noqa: F401


class ExportedStudentConfig(PretrainedConfig):
    """What a student consists of, and how it reads a tokenizer's output.

    :ivar architecture: name and sizes; ``max_words`` of a sentence are read, the rest is truncated.
    :ivar joint, reads: what the settings of that name say of the architecture.
    :ivar pair: whether it compares two sentences.
    :ivar pretrained: the configuration of the transformers model that it is, if it is one.
    :ivar calibration_temperature: what the logits are divided by, chosen on held-out rows after
        training to calibrate probabilities (Guo et al. 2017, section 4.2); 1 changes nothing.
    :ivar padding, unknown: the ids of the padding, and of what a text without words is read as.
    :ivar closing: how many special tokens end a sentence; they are kept if it is truncated.
    :ivar segments: whether the model itself is told which sentence of a pair a token belongs to.
    """

    model_type = "distillery_student"

    def __init__(
        self,
        vocab_size: int = 0,
        embedding_size: int = 0,
        architecture: dict[str, Any] | None = None,
        joint: bool = False,
        reads: str = "words",
        pair: bool = False,
        pretrained: dict[str, Any] | None = None,
        calibration_temperature: float = 1.0,
        padding: int = 0,
        unknown: int = 0,
        closing: int = 0,
        segments: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size, self.embedding_size = vocab_size, embedding_size
        self.architecture, self.joint, self.reads = architecture or {}, joint, reads
        self.pair, self.pretrained = pair, pretrained
        self.calibration_temperature = calibration_temperature
        self.padding, self.unknown, self.closing = padding, unknown, closing
        self.segments = segments

    def network(self) -> StudentNetwork:
        """Return the untrained network."""
        units = self.architecture.get("classifier")
        settings = SimpleNamespace(**self.architecture, joint=self.joint, classifier_units=units)
        sizes, names = (self.vocab_size, self.embedding_size), [*self.id2label.values()]
        return StudentNetwork(StudentConfig(*sizes, settings, self.pair, names, self.pretrained))


class StudentForSequenceClassification(PreTrainedModel):
    """A student's network with transformers' interface."""

    config_class = ExportedStudentConfig
    base_model_prefix = "encoder"

    def __init__(self, config: ExportedStudentConfig) -> None:
        super().__init__(config)
        network = config.network()
        # The layers are attributes of this module so that the weights have the saved names.
        self.encoder, self.hidden, self.logits = network.encoder, network.hidden, network.logits
        self._network = (network,)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Keep torch's own initialisation."""

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """Return logits (rows, classes) or a regression's (rows, 1), divided by the temperature.

        :param input_ids: (rows, longest); :param attention_mask: 1 for words, 0 for padding.
        :param token_type_ids: 0 for the first sentence of a pair, 1 for the second.
        :param labels: class numbers or scores (rows,); with them, the loss is returned too.
        :raises ValueError: if a pair's second sentence is not marked, or a sequence is too long.
        """
        # If all texts are without words, a tokenizer returns no columns, and floats.
        ids = nn.functional.pad(input_ids.long(), (0, 1), value=self.config.padding)
        counted = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        counted = nn.functional.pad(counted, (0, 1)).bool()
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        types = nn.functional.pad(types.long(), (0, 1))
        (network,) = self._network
        if not self.config.pair:
            outputs = network(*self._sentences(ids, counted))
        elif self.config.reads == "sequence":
            outputs = network(**self._sequences(ids, counted, types))
        elif token_type_ids is None:
            raise ValueError(
                "A pair without token_type_ids, which mark its second sentence. Use the tokenizer of this folder."
            )
        else:
            first, second = (self._sentences(ids, counted & (types == side)) for side in (0, 1))
            outputs = network(*first, *second)
        logits = outputs["logits"] / self.config.calibration_temperature
        return SequenceClassifierOutput(_loss(logits, labels), logits)

    def _sentences(self, ids: torch.Tensor, counted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the ids and lengths of what is read of each row, at least one word."""
        lengths, positions = counted.sum(1, keepdim=True), counted.cumsum(1) - 1
        closing = self.config.closing
        begins = positions < self.config.architecture["max_words"] - closing
        read = counted & (begins | (positions >= lengths - closing))
        lengths = read.sum(1)
        rows = _pack(ids, read, self.config.padding)
        rows[:, 0] = torch.where(lengths > 0, rows[:, 0], self.config.unknown)
        return rows, lengths.clamp(min=1)

    def _sequences(
        self, ids: torch.Tensor, counted: torch.Tensor, types: torch.Tensor
    ) -> dict[str, torch.Tensor | None]:
        """Return the network's arguments for pairs that are one sequence each."""
        lengths, most = counted.sum(1), self.config.architecture["max_words"]
        if int(lengths.max()) > most:
            # Only the tokenizer knows which sentence of a pair to truncate.
            raise ValueError(
                f"A pair of {int(lengths.max())} tokens, but only {most} are read. Leave the "
                f"tokenizer's truncation on, or call it with truncation=True, max_length={most}."
            )
        segments = _pack(types, counted, 0) if self.config.segments else None
        rows = _pack(ids, counted, self.config.padding)
        return {"ids": rows, "lengths": lengths, "segments": segments}


class PairTokenizer(PreTrainedTokenizerFast):
    """Accepts only pairs, and truncates long ones unless told otherwise, where transformers' tokenizers do neither."""

    def __call__(
        self, text: Any = None, text_pair: Any = None, *rest: Any, truncation: Any = None, **kwargs: Any
    ) -> Any:
        """Return the model's input; ``truncation=None`` means True, and a text without a second one is a ValueError."""
        listed = text if isinstance(text, list | tuple) else [text]
        if text_pair is None and any(isinstance(item, str) for item in listed):
            raise ValueError(
                "This student compares two sentences: call tokenizer(first, second), or a pipeline "
                'with {"text": first, "text_pair": second}.'
            )
        cut = truncation is None or truncation
        return super().__call__(text, text_pair, *rest, truncation=cut, **kwargs)


def _pack(values: torch.Tensor, kept: torch.Tensor, filler: int) -> torch.Tensor:
    """Return the values to keep, moved to the start of each row; at least one column."""
    order = (~kept).long().argsort(dim=1, stable=True)
    lengths = kept.sum(1)
    packed = values.gather(1, order)[:, : max([1, *lengths.tolist()])]
    return torch.where(inside(packed, lengths), packed, filler)


def _loss(logits: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor | None:
    if labels is None:
        return None
    if logits.shape[1] == 1:
        return nn.functional.mse_loss(logits[:, 0], labels.float())
    return nn.functional.cross_entropy(logits, labels)
