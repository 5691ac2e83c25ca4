"""Layers used by several students."""

from typing import Any

import torch
from torch import nn

from .inputs import PAD_ID

Settings = Any
"""A row of ``students`` in params.yaml, its keys as attributes."""


class WordEmbeddings(nn.Module):
    """Word vectors: trained, static, or both side by side (the channels of Kim 2014).

    :param words: rows of the table; :param width: values per word and channel.
    """

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
    """One bidirectional LSTM over padded rows; returns both directions' states at every step.

    :param inputs: values per word; :param hidden: units per direction.
    """

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
    """Return each row's words in reverse order, with the padding still at the end.

    :param vectors: (rows, words, width); :param lengths: int64 (rows,).
    """
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
