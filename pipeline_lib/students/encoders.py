"""Encoders that see one sentence: word numbers in, one vector out."""

from typing import Any

import torch
from torch import nn

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
        sizes = self.embeddings.width, settings["hidden"]
        # Two nets of one direction: packing, which a bidirectional one needs where sentences differ
        # in length, is slow on a CPU.
        self.ahead = nn.LSTM(*sizes, batch_first=True)
        self.back = nn.LSTM(*sizes, batch_first=True)
        self.width = 2 * settings["hidden"]

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors.

        :param ids: int64 (rows, longest), padded at the end.
        :param lengths: int64 (rows,), at least 1.
        :returns: float (rows, 2 · hidden).
        """
        vectors = self.dropout(self.embeddings(ids))
        # The last word's state of each row: what is read after it, the padding, plays no part.
        last = (lengths.to(ids.device) - 1)[:, None, None]
        states = [
            net(part)[0].gather(1, last.expand(-1, 1, net.hidden_size)).squeeze(1)
            for net, part in ((self.ahead, vectors), (self.back, reverse(vectors, lengths)))
        ]
        return self.dropout(torch.cat(states, dim=-1))


def reverse(vectors: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return each row's words in reverse order, the padding left behind them.

    :param vectors: (rows, words, width); :param lengths: int64 (rows,).
    """
    columns = torch.arange(vectors.shape[1], device=vectors.device)
    places = lengths.to(vectors.device)[:, None] - 1 - columns
    places = torch.where(places >= 0, places, columns)
    return vectors.gather(1, places[:, :, None].expand_as(vectors))


ENCODERS: dict[str, type[nn.Module]] = {"bilstm": BiLSTMEncoder}
"""Architecture name, as in params.yaml, to its encoder."""
