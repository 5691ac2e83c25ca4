"""Encoders that see one sentence: word numbers in, one vector out."""

from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

PAD_ID = 0


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
        """Start every channel from ``vectors``, shape (words, width)."""
        for channel in (self.trained, self.static):
            if channel is not None:
                with torch.no_grad():
                    channel.weight.copy_(vectors)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return vectors of shape (rows, words, width)."""
        channels = [c(ids) for c in (self.trained, self.static) if c is not None]
        return channels[0] if len(channels) == 1 else torch.cat(channels, dim=-1)


class BiLSTMEncoder(nn.Module):
    """One bidirectional LSTM; the last states of both directions, concatenated.

    Tang et al. 2019, section 3.1; no attention and no layer norm.
    """

    def __init__(self, words: int, width: int, settings: dict[str, Any]) -> None:
        super().__init__()
        self.embeddings = WordEmbeddings(words, width, settings["embeddings"])
        self.dropout = nn.Dropout(settings["dropout"])
        self.lstm = nn.LSTM(
            self.embeddings.width, settings["hidden"], batch_first=True, bidirectional=True
        )
        self.width = 2 * settings["hidden"]

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors.

        :param ids: int64 (rows, longest), padded at the end.
        :param lengths: int64 (rows,), at least 1.
        :returns: float (rows, 2 · hidden).
        """
        vectors = self.dropout(self.embeddings(ids))
        if bool((lengths == ids.shape[1]).all()):
            states = self.lstm(vectors)[1][0]
        else:
            # Without packing the backward direction would start in the padding.
            packed = pack_padded_sequence(
                vectors, lengths.cpu(), batch_first=True, enforce_sorted=False
            )
            states = self.lstm(packed)[1][0]
        return self.dropout(torch.cat([states[0], states[1]], dim=-1))


ENCODERS: dict[str, type[nn.Module]] = {"bilstm": BiLSTMEncoder}
"""Architecture name, as in params.yaml, to its encoder."""
