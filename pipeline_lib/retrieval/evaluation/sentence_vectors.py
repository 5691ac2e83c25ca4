"""Embedding sentences with a pretrained model, for evaluation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from pipeline_lib.base.devices import resolve_batch_tokens, resolve_device, resolve_precision
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.vector_model import load_vector_model
from pipeline_lib.params import Params

Encode = Callable[[list[str]], np.ndarray]
"""Maps sentences to their vectors, float32 (sentences, width)."""


@dataclass(frozen=True)
class Computing:
    """Where and how models and teachers run: ``device`` and ``precompute``, resolved."""

    device: str
    precision: str
    batch_tokens: int

    @classmethod
    def of(cls, params: Params) -> Self:
        """Resolve params on this machine."""
        device, precompute = resolve_device(params.device), params.precompute
        precision = resolve_precision(precompute.precision, device)
        return cls(str(device), precision, resolve_batch_tokens(precompute.batch_tokens, device))


def model_encoder(params: Params, layout: Layout, model: str, pooling: str, max_length: int) -> Encode:
    """Return the embedding function of a row of ``models``.

    :param pooling: see :class:`~pipeline_lib.outputs.vectors.VectorModel`.
    :param max_length: the word-piece limit of a sentence; the rest is truncated.
    """
    computing = Computing.of(params)
    loaded = load_vector_model(layout.model(model), computing.device, computing.precision, pooling)
    return lambda texts: loaded.predict(texts, max_length, computing.batch_tokens)
