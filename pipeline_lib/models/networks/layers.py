"""Layers used by several students, what they read, and dropout with a mask that is fast to draw on a CPU."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

PAD_ID = 0
"""The id of words' padding, as in :mod:`pipeline_lib.text.ragged`."""


def inside(ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return bool (rows, columns): whether a column is within the row's length."""
    return torch.arange(ids.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]


def model_inputs(batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor | None]:
    """Return a batch of :class:`~pipeline_lib.text.ragged.Sentences` as transformers' arguments."""
    ids, lengths = batch["ids"], batch["lengths"]
    # Without padding a mask says nothing, and attention without one is cheaper.
    padded = int(lengths.min()) < ids.shape[1]
    mask = inside(ids, lengths).long() if padded else None
    segments = {"token_type_ids": batch["segments"]} if batch.get("segments") is not None else {}
    return {"input_ids": ids, "attention_mask": mask, **segments}


class Dropout(nn.Dropout):
    """``torch.nn.Dropout``, with the probability rounded to a multiple of 2⁻¹⁶ on a CPU."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return ``input`` with values zeroed and the others scaled up, while training."""
        return dropout(input, self.p, self.training)


def dropout(values: torch.Tensor, p: float, training: bool) -> torch.Tensor:
    """Zero each value with probability ``p`` and scale the others by 1 / (1 - p)."""
    if values.device.type != "cpu" or not training or p in (0.0, 1.0):
        return nn.functional.dropout(values, p, training)
    count = values.numel()
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    kept = draws.view(torch.int16)[:count].view(values.shape) >= round((p - 0.5) * 2**16)
    return values * kept.to(values.dtype).mul_(1.0 / (1.0 - p))


def replace_dropout(model: nn.Module) -> None:
    """Replace every ``torch.nn.Dropout`` in ``model`` with :class:`Dropout`."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Dropout:
                setattr(parent, name, Dropout(child.p))


Settings = Any
"""A row of ``students`` in params.yaml, its keys as attributes."""


class WordEmbeddings(nn.Module):
    """Word vectors of some ``width``: trained, static, or both side by side (the channels of Kim 2014)."""

    def __init__(self, words: int, width: int, mode: str) -> None:
        super().__init__()
        self.trained = nn.Embedding(words, width, PAD_ID) if mode != "static" else None
        self.static = nn.Embedding(words, width, PAD_ID) if mode != "trained" else None
        if self.static is not None:
            self.static.weight.requires_grad_(False)
        self.width = width * (2 if mode == "multichannel" else 1)

    def load(self, vectors: torch.Tensor) -> None:
        """Initialise every channel with ``vectors``, shape (words, width)."""
        for channel in (self.trained, self.static):
            if channel is not None:
                with torch.no_grad():
                    channel.weight.copy_(vectors)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return vectors of shape (rows, words, width)."""
        channels = [c(ids) for c in (self.trained, self.static) if c is not None]
        return channels[0] if len(channels) == 1 else torch.cat(channels, dim=-1)


class BiLSTM(nn.Module):
    """A bidirectional LSTM over padded rows, ``hidden`` units per direction; returns the states at every step."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        # Two unidirectional LSTMs: a bidirectional one needs packed sequences for sentences of
        # different lengths, and packing is slow on a CPU.
        self.ahead = nn.LSTM(inputs, hidden, batch_first=True)
        self.back = nn.LSTM(inputs, hidden, batch_first=True)
        self.width = 2 * hidden

    def forward(self, vectors: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return states of shape (rows, words, 2 · hidden); those of the padding are meaningless.

        :param vectors: (rows, words, inputs), padded at the end; :param lengths: int64 (rows,).
        """
        ahead, _ = self.ahead(vectors)
        back, _ = self.back(reverse(vectors, lengths))
        return torch.cat([ahead, reverse(back, lengths)], dim=-1)


def reverse(vectors: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return each row's words, (rows, words, width), in reverse order, with the padding still at the end."""
    columns = torch.arange(vectors.shape[1], device=vectors.device)
    places = lengths.to(vectors.device)[:, None] - 1 - columns
    places = torch.where(places >= 0, places, columns)
    return vectors.gather(1, places[:, :, None].expand_as(vectors))


def mean(vectors: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Return each row's mean of the vectors that are counted, (rows, width)."""
    total = (vectors * counted[:, :, None]).sum(1)
    return total / counted.sum(1, keepdim=True).clamp(min=1)


def stack(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return the rows of ``first`` followed by those of ``second``, padded to the same width."""
    columns = max(first.shape[1], second.shape[1])
    return torch.cat([nn.functional.pad(ids, (0, columns - ids.shape[1]), value=PAD_ID) for ids in (first, second)])
