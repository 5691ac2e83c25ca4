"""A distilled student as a model of transformers, of single sentences or of pairs.

    AutoModelForSequenceClassification.from_pretrained("folder", trust_remote_code=True)
    pipeline("text-classification", "folder", trust_remote_code=True)("A sentence.")

This file and ``distilled_encoder.py`` are copied into the folder and are self-contained: they need
only torch and transformers.  They are the code that ``trust_remote_code`` runs.  The layers are
those used for inference: there is no dropout.
"""

from typing import Any

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import SequenceClassifierOutput

from .distilled_encoder import NETWORKS, WordEmbeddings, inside


class StudentConfig(PretrainedConfig):
    """What a student consists of, and how it reads a tokenizer's output.

    :ivar architecture: name and sizes; ``max_words`` of a sentence are read, the rest is truncated.
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
        self.architecture = architecture or {}
        self.pair, self.pretrained = pair, pretrained
        self.calibration_temperature = calibration_temperature
        self.padding, self.unknown, self.closing = padding, unknown, closing
        self.segments = segments


class WordMean(nn.Module):
    """The mean of the sentence's word vectors."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.embeddings = WordEmbeddings(config)
        self.width = self.embeddings.width

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors (rows, width)."""
        return weighted_mean(self.embeddings(ids), inside(ids, lengths))


class BothWays(nn.Module):
    """An LSTM in each direction; the states of every word."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.ahead, self.back = (nn.LSTM(inputs, hidden, batch_first=True) for _ in range(2))

    def forward(self, vectors: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return states (rows, words, 2 · hidden); those of the padding are meaningless."""
        columns = torch.arange(vectors.shape[1], device=vectors.device)
        places = lengths[:, None] - 1 - columns
        # Each row's words in reverse order, with the padding still after them.
        places = torch.where(places >= 0, places, columns)[:, :, None]
        back, _ = self.back(vectors.gather(1, places.expand_as(vectors)))
        return torch.cat([self.ahead(vectors)[0], back.gather(1, places.expand_as(back))], dim=-1)


class BiAttentive(nn.Module):
    """Two BiLSTMs with attention between the sentences (Liu 2020, section 4.1.2).

    A single sentence is read as a pair with itself.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        settings = config["architecture"]
        self.pools, states = settings["pools"], 2 * settings["hidden"]
        # Always trained: this architecture has one channel.
        self.embeddings = WordEmbeddings(config | {"architecture": {"embeddings": "trained"}})
        self.feedforward = nn.Linear(self.embeddings.width, settings["feedforward"])
        self.first = BothWays(settings["feedforward"], settings["hidden"])
        self.second = BothWays(3 * states, settings["hidden"])
        count = 2 * ("self" in self.pools)
        self.scores = nn.ModuleList(nn.Linear(states, 1, bias=False) for _ in range(count))
        self.width = settings["shared"]
        self.shared = nn.Linear(2 * len(self.pools) * states, self.width)

    def forward(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor,
        ids_2: torch.Tensor | None = None,
        lengths_2: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return vectors of the pairs (rows, width)."""
        sides = [(ids, lengths)] if ids_2 is None else [(ids, lengths), (ids_2, lengths_2)]
        counted = [inside(*side) for side in sides]
        states = [
            self.first(torch.relu(self.feedforward(self.embeddings(words))), long)
            for words, long in sides
        ]
        others = zip(states[::-1], counted[::-1], strict=True)
        read = [
            self._second(state, *other, long)
            for state, other, (_, long) in zip(states, others, sides, strict=True)
        ]
        pooled = [self._pool(read[side], counted[side], side) for side in (0, -1)]
        return torch.relu(self.shared(torch.cat(pooled, dim=-1)))

    def _second(
        self, states: torch.Tensor, other: torch.Tensor, counted: torch.Tensor, long: torch.Tensor
    ) -> torch.Tensor:
        """Return the second BiLSTM's states of a sentence, given the other one."""
        scores = other @ states.transpose(1, 2)
        weights = scores.masked_fill(~counted[:, :, None], -torch.inf).softmax(1)
        context = weights.transpose(1, 2) @ other
        features = torch.cat([states, states - context, states * context], dim=-1)
        return self.second(features, long)

    def _pool(self, states: torch.Tensor, counted: torch.Tensor, side: int) -> torch.Tensor:
        """Return the concatenated pools of one sentence."""
        pooled, outside = [], ~counted[:, :, None]
        for pool in self.pools:
            if pool in ("max", "min"):
                bound = -torch.inf if pool == "max" else torch.inf
                filled = states.masked_fill(outside, bound)
                pooled.append(filled.amax(1) if pool == "max" else filled.amin(1))
            elif pool == "self":
                scores = self.scores[side](states).masked_fill(outside, -torch.inf)
                pooled.append(weighted_mean(states, scores.softmax(1).squeeze(-1)))
            else:
                pooled.append(weighted_mean(states, counted))
        return torch.cat(pooled, dim=-1)


class FirstStates(nn.Module):
    """A transformer's first token: the mean of its states over layers, or that of the last one."""

    def __init__(self, config: dict[str, Any]) -> None:
        from transformers import AutoConfig, AutoModel

        super().__init__()
        self.model = AutoModel.from_config(AutoConfig.for_model(**config["pretrained"]))
        if getattr(self.model, "pooler", None) is not None:
            self.model.pooler = None
        self.last = config["architecture"]["pool"] == "last"
        self.width = self.model.config.hidden_size

    def forward(
        self, ids: torch.Tensor, lengths: torch.Tensor, segments: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return vectors (rows, width)."""
        extra = {} if segments is None else {"token_type_ids": segments}
        mask = inside(ids, lengths).long()
        outputs = self.model(ids, attention_mask=mask, output_hidden_states=True, **extra)
        # The first hidden states are the embeddings.
        states = torch.stack([layer[:, 0] for layer in outputs.hidden_states[1:]], dim=1)
        return states[:, -1] if self.last else states.mean(1)


SEQUENCE = ("transformer", "bert")
"""The architectures that read both sentences of a pair as one sequence."""
READERS: dict[str, type[nn.Module]] = {
    **NETWORKS,
    "static": WordMean,
    "biattentive": BiAttentive,
    **dict.fromkeys(SEQUENCE, FirstStates),
}
"""Architecture to its encoder; those of ``NETWORKS`` read each sentence of a pair separately."""


class StudentForSequenceClassification(PreTrainedModel):
    """A student's encoder, a ReLU layer if it has one, and the outputs."""

    config_class = StudentConfig
    base_model_prefix = "encoder"

    def __init__(self, config: StudentConfig) -> None:
        super().__init__(config)
        settings = config.architecture
        self.joint = settings["architecture"] in ("biattentive", *SEQUENCE)
        self.sequence = settings["architecture"] in SEQUENCE
        sizes = {"vocab_size": config.vocab_size, "embedding_size": config.embedding_size}
        made = sizes | {"architecture": settings, "pretrained": config.pretrained}
        self.encoder = READERS[settings["architecture"]](made)
        width = self.encoder.width * (4 if config.pair and not self.joint else 1)
        units = settings.get("classifier")
        self.hidden = nn.Sequential(nn.Linear(width, units), nn.ReLU()) if units else nn.Identity()
        self.logits = nn.Linear(units or width, config.num_labels)
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
        if self.config.pair and not self.sequence and token_type_ids is None:
            raise ValueError(
                "A pair without token_type_ids, which mark its second sentence. Use the tokenizer "
                "of this folder."
            )
        logits = self.logits(self.hidden(self._vectors(ids, counted, types)))
        logits = logits / self.config.calibration_temperature
        return SequenceClassifierOutput(_loss(logits, labels), logits)

    def _vectors(
        self, ids: torch.Tensor, counted: torch.Tensor, types: torch.Tensor
    ) -> torch.Tensor:
        """Return the features for the layers above the encoder, (rows, width)."""
        if self.sequence:
            return self._sequence(ids, counted, types)
        if not self.config.pair:
            return self.encoder(*self._sentences(ids, counted))
        sides = [self._sentences(ids, counted & (types == side)) for side in (0, 1)]
        if self.joint:
            return self.encoder(*sides[0], *sides[1])
        first, second = (self.encoder(*side) for side in sides)
        return torch.cat([first, second, first * second, (first - second).abs()], dim=-1)

    def _sentences(
        self, ids: torch.Tensor, counted: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the ids and lengths of what is read of each row, at least one word."""
        lengths, places = counted.sum(1, keepdim=True), counted.cumsum(1) - 1
        closing = self.config.closing
        begins = places < self.config.architecture["max_words"] - closing
        kept = counted & (begins | (places >= lengths - closing))
        lengths = kept.sum(1)
        rows = _pack(ids, kept, self.config.padding)
        rows[:, 0] = torch.where(lengths > 0, rows[:, 0], self.config.unknown)
        return rows, lengths.clamp(min=1)

    def _sequence(
        self, ids: torch.Tensor, counted: torch.Tensor, types: torch.Tensor
    ) -> torch.Tensor:
        """Return the vectors of rows that are one sequence each."""
        if not self.config.pair:
            return self.encoder(*self._sentences(ids, counted))
        lengths, most = counted.sum(1), self.config.architecture["max_words"]
        if int(lengths.max()) > most:
            # Only the tokenizer knows which sentence of a pair to truncate.
            raise ValueError(
                f"A pair of {int(lengths.max())} tokens, but only {most} are read. Leave the "
                f"tokenizer's truncation on, or call it with truncation=True, max_length={most}."
            )
        segments = _pack(types, counted, 0) if self.config.segments else None
        return self.encoder(_pack(ids, counted, self.config.padding), lengths, segments)


class PairTokenizer(PreTrainedTokenizerFast):
    """Accepts only pairs, and truncates those that are too long unless told otherwise.

    By default a tokenizer of transformers truncates nothing, and accepts a single text.
    """

    def __call__(
        self,
        text: Any = None,
        text_pair: Any = None,
        *rest: Any,
        truncation: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Return the model's input; ``truncation=None`` means True.

        :raises ValueError: if there is a text without a second one.
        """
        listed = text if isinstance(text, list | tuple) else [text]
        if text_pair is None and any(isinstance(one, str) for one in listed):
            raise ValueError(
                "This student compares two sentences: call tokenizer(first, second), or a pipeline "
                'with {"text": first, "text_pair": second}.'
            )
        cut = truncation is None or truncation
        return super().__call__(text, text_pair, *rest, truncation=cut, **kwargs)


def weighted_mean(vectors: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return each row's weighted mean of its words' vectors, (rows, width)."""
    total = (vectors * weights[:, :, None]).sum(1)
    return total / weights.sum(1, keepdim=True)


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
