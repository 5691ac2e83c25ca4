"""The bi-attentive BiLSTM of Liu 2020, section 4.1.2: it reads both sentences of a pair at once."""

import torch
from torch import nn

from .layers import BiLSTM, Dropout, Settings, WordEmbeddings, inside, stack


class BiAttentiveReader(nn.Module):
    """Two BiLSTMs with attention between the sentences, and pooling over the second one's states.

    Liu 2020 (thesis), equations 4.5 to 4.12, and the shared layer of section 4.2.  A single
    sentence is paired with itself; since the two sides are then equal, they are computed once.
    """

    def __init__(self, words: int, width: int, settings: Settings) -> None:
        super().__init__()
        self.pools = settings.pools
        self.embeddings = WordEmbeddings(words, width, "trained")
        self.dropout = Dropout(settings.dropout)
        self.feedforward = nn.Linear(width, settings.feedforward)
        self.first = BiLSTM(settings.feedforward, settings.hidden)
        self.second = BiLSTM(3 * self.first.width, settings.hidden)
        # v1 and v2 of equation 4.10.  Its d1 and d2 would shift all of a softmax's scores equally.
        self.scores = nn.ModuleList(
            nn.Linear(self.second.width, 1, bias=False) for _ in range(2 * ("self" in self.pools))
        )
        pooled = 2 * len(self.pools) * self.second.width
        self.shared = nn.Linear(pooled, settings.shared)
        self.width = settings.shared

    def forward(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor,
        ids_2: torch.Tensor | None = None,
        lengths_2: torch.Tensor | None = None,
        segments: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """Return the named output ``vector`` (rows, width): the shared layer's output for a pair.

        :param ids: int64 (rows, longest), padded at the end; :param lengths: int64 (rows,), at least 1.
        :param ids_2: the second sentences; None: each first sentence is paired with itself.
        :param lengths_2: their words per row.  :param segments: not used.
        """
        if ids_2 is not None:
            # One batch for both sides halves the number of LSTM steps.
            ids, lengths = stack(ids, ids_2), torch.cat([lengths, lengths_2])
        counted = inside(ids, lengths)
        vectors = torch.relu(self.feedforward(self.dropout(self.embeddings(ids))))
        states = self.first(vectors, lengths)
        other, counted_other = (states, counted) if ids_2 is None else map(_swap, (states, counted))
        context = attend(states, other, counted_other)
        features = torch.cat([states, states - context, states * context], dim=-1)
        states = self.second(features, lengths)
        sides = [(states, counted)] * 2
        if ids_2 is not None:
            sides = list(zip(states.chunk(2), counted.chunk(2), strict=True))
        pooled = torch.cat([self._pool(*inputs, side) for side, inputs in enumerate(sides)], dim=-1)
        # Means are float32 even where half() or bfloat16() has converted the weights.
        pooled = self.dropout(pooled).to(self.shared.weight.dtype)
        return {"vector": torch.relu(self.shared(pooled))}

    def _pool(self, states: torch.Tensor, counted: torch.Tensor, side: int) -> torch.Tensor:
        """Return the pools of one side, concatenated (equation 4.12)."""
        pooled, outside = [], ~counted[:, :, None]
        for pool in self.pools:
            if pool == "max":
                pooled.append(states.masked_fill(outside, -torch.inf).amax(1))
            elif pool == "min":
                pooled.append(states.masked_fill(outside, torch.inf).amin(1))
            else:
                weights = self._weights(states, outside, side) if pool == "self" else counted
                pooled.append(_weighted(states, weights))
        return torch.cat(pooled, dim=-1)

    def _weights(self, states: torch.Tensor, outside: torch.Tensor, side: int) -> torch.Tensor:
        """Return the self-attentive pool's weight for each word, (rows, words); equation 4.10."""
        scores = self.scores[side](states).masked_fill(outside, -torch.inf)
        return scores.softmax(1).squeeze(-1)


def attend(states: torch.Tensor, other: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Return, for each word of a sentence, its context from the other one (equations 4.7 and 4.8).

    For a pair X, Y with A = X Yᵀ, X is compared with C_y = softmax(Aᵀ)ᵀ Y, where the softmax runs
    down each column, over Y's words; this gives one context per word of X, as equation 4.9 needs.

    :param states: X, (rows, words, width); :param other: Y, (rows, other words, width).
    :param counted: bool (rows, other words): which words of Y are not padding.
    :returns: C_y, (rows, words, width).
    """
    scores = other @ states.transpose(1, 2)
    weights = scores.masked_fill(~counted[:, :, None], -torch.inf).softmax(1)
    return weights.transpose(1, 2) @ other


def _swap(both: torch.Tensor) -> torch.Tensor:
    """Return the second sentences' rows above those of the first."""
    return torch.cat(both.chunk(2)[::-1])


def _weighted(states: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted mean of each row's states, (rows, width)."""
    weights = weights.float()  # a long sum in bfloat16 would lose precision
    total = (states * weights[:, :, None]).sum(1)
    return total / weights.sum(1, keepdim=True)
