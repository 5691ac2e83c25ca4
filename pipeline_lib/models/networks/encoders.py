"""Encoders from the word ids of one sentence to one vector."""

import torch
from torch import nn

from .layers import Dropout, Settings, WordEmbeddings, inside, mean, reverse


class BiLSTMEncoder(nn.Module):
    """A bidirectional LSTM's final states, concatenated (Tang et al. 2019, section 3.1), without attention."""

    def __init__(self, words: int, width: int, settings: Settings) -> None:
        super().__init__()
        self.embeddings = WordEmbeddings(words, width, settings.embeddings)
        self.dropout = Dropout(settings.dropout)
        sizes = self.embeddings.width, settings.hidden
        # Two unidirectional LSTMs: a bidirectional one needs packed sequences for sentences of
        # different lengths, and packing is slow on a CPU.
        self.ahead = nn.LSTM(*sizes, batch_first=True)
        self.back = nn.LSTM(*sizes, batch_first=True)
        self.width = 2 * settings.hidden

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors.

        :param ids: int64 (rows, longest), padded at the end.
        :param lengths: int64 (rows,), at least 1.
        :returns: float (rows, 2 · hidden).
        """
        vectors = self.dropout(self.embeddings(ids))
        # The state at each row's last word, so that the padding after it plays no part.
        last = (lengths.to(ids.device) - 1)[:, None, None]
        states = [
            net(read)[0].gather(1, last.expand(-1, 1, net.hidden_size)).squeeze(1)
            for net, read in ((self.ahead, vectors), (self.back, reverse(vectors, lengths)))
        ]
        return self.dropout(torch.cat(states, dim=-1))


class SentenceBiLSTMEncoder(BiLSTMEncoder):
    """A BiLSTM whose final states are mapped to the teacher's width, tanh(W h) (Wu et al. 2020, section 3.1)."""

    def __init__(self, words: int, width: int, settings: Settings) -> None:
        super().__init__(words, width, settings)
        self.projection = nn.Linear(self.width, settings.width, bias=False)
        self.width = settings.width

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors between -1 and 1, float (rows, width)."""
        return torch.tanh(self.projection(super().forward(ids, lengths)))


class CNNEncoder(nn.Module):
    """Convolutions of several widths over the words, with max-over-time pooling (Kim 2014)."""

    def __init__(self, words: int, width: int, settings: Settings) -> None:
        super().__init__()
        self.embeddings = WordEmbeddings(words, width, settings.embeddings)
        self.dropout = Dropout(settings.dropout)
        self.filters = nn.ModuleList(
            nn.Conv1d(self.embeddings.width, settings.filters, size) for size in settings.widths
        )
        self.width = settings.filters * len(settings.widths)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors; see :meth:`BiLSTMEncoder.forward`."""
        vectors = self.embeddings(ids) * inside(ids, lengths)[:, :, None]
        widest = max(layer.kernel_size[0] for layer in self.filters)
        missing = max(0, widest - ids.shape[1])
        vectors = nn.functional.pad(vectors, (0, 0, 0, missing)).transpose(1, 2)
        vectors = self.dropout(vectors)
        return self.dropout(torch.cat([self._pool(f, vectors, lengths) for f in self.filters], 1))

    def _pool(self, layer: nn.Conv1d, vectors: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        answers = torch.relu(layer(vectors))
        # Ignore windows that reach into the padding, unless the sentence is shorter than one.
        windows = (lengths - layer.kernel_size[0] + 1).clamp(min=1)
        counted = inside(answers[:, 0], windows)[:, None]
        # The ReLU's output is at least 0, so the masked zeros never win the maximum.
        return (answers * counted).amax(2)


class StaticEncoder(nn.Module):
    """The mean of the sentence's word vectors."""

    def __init__(self, words: int, width: int, settings: Settings) -> None:
        super().__init__()
        self.embeddings = WordEmbeddings(words, width, settings.embeddings)
        self.dropout = Dropout(settings.dropout)
        self.width = self.embeddings.width

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors; see :meth:`BiLSTMEncoder.forward`."""
        return self.dropout(mean(self.embeddings(ids), inside(ids, lengths)))


class RegressionEncoder(nn.Module):
    """A linear model's outputs, but for its bias: tables of what each word, and each hashed n-gram, adds to them.

    The mean of the words' rows, and the sum of the n-grams', divided by the norm of their TF-IDF weights.  Of a pair,
    the words' rows are vectors, which the outputs are made of.
    """

    def __init__(self, words: int, width: int, settings: Settings) -> None:
        super().__init__()
        self.longest, self.width = settings.ngrams, width
        self.embeddings = WordEmbeddings(words, width, "trained") if settings.mean else None
        if self.longest:
            self.table = nn.Embedding(settings.buckets, width)
            self.squares = nn.Embedding(settings.buckets, 1)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors; see :meth:`BiLSTMEncoder.forward`."""
        vectors = 0.0 if self.embeddings is None else mean(self.embeddings(ids), inside(ids, lengths))
        if not self.longest:
            return vectors
        buckets, counted = self.buckets(ids, lengths)
        total, squares = ((table(buckets) * counted[:, :, None]).sum(1) for table in (self.table, self.squares))
        # Known n-grams have weights of 1 or more.
        return vectors + total / squares.clamp(min=1.0).sqrt()

    def buckets(self, ids: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return each row's n-grams by their bucket, int64 (rows, n-grams), and which of them are within the row."""
        keys, buckets, counted = ids, [], []
        for size in range(1, min(self.longest, ids.shape[1]) + 1):
            if size > 1:
                keys = keys[:, :-1] * MULTIPLIER + ids[:, size - 1 :] + size
            buckets.append((keys ^ (keys >> 29)) % self.table.num_embeddings)
            counted.append(inside(keys, lengths - size + 1))
        return torch.cat(buckets, 1), torch.cat(counted, 1)


MULTIPLIER = 0x9E3779B97F4A7C15 - (1 << 64)
"""An odd number with its bits well spread (Knuth's multiplicative hashing), as int64."""
