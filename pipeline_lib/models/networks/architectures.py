"""The registry of encoders, left out of a training's key, which has its own encoder's code: see `fingerprint`."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from .biattentive import BiAttentiveReader
from .encoders import BiLSTMEncoder, CNNEncoder, RegressionEncoder, SentenceBiLSTMEncoder, StaticEncoder
from .layers import Settings
from .siamese import SiameseTransformerEncoder
from .transformer import TransformerReader

ENCODERS: dict[str, type[nn.Module]] = {
    "bilstm": BiLSTMEncoder,
    "bilstm_sra": SentenceBiLSTMEncoder,
    "cnn": CNNEncoder,
    "static": StaticEncoder,
    "regression": RegressionEncoder,
    "biattentive": BiAttentiveReader,
    "transformer": TransformerReader,
    "dse": SiameseTransformerEncoder,
    "bert": TransformerReader,
}
"""Architecture name, as in params.yaml, to its encoder or joint reader of sentence pairs."""


def build_encoder(settings: Settings, words: int, width: int, pretrained: Mapping[str, Any] | None = None) -> nn.Module:
    """Return an untrained encoder, or joint reader of pairs.

    :param words: the vocabulary size; :param width: values per word vector.
    :param pretrained: its configuration, if it is a transformers model.
    """
    extra = () if pretrained is None else (pretrained,)
    return ENCODERS[settings.architecture](words, width, settings, *extra)
