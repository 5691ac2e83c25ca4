"""A distilled sentence encoder, as a module of sentence-transformers.

    SentenceTransformer("folder", trust_remote_code=True).encode(["A sentence."])

This file is copied into the folder and is self-contained: besides torch it needs tokenizers and
safetensors, and for a transformer, transformers.  It is the code that ``trust_remote_code`` runs.
"""

import json
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import nn

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
CHANNELS = {"trained": ["trained"], "static": ["static"], "multichannel": ["trained", "static"]}


class WordEmbeddings(nn.ModuleDict):
    """The word vectors of one channel, or of two side by side."""

    def __init__(self, config: dict[str, Any]) -> None:
        sizes = config["vocab_size"], config["embedding_size"]
        channels = CHANNELS[config["architecture"]["embeddings"]]
        super().__init__({name: nn.Embedding(*sizes) for name in channels})
        self.width = config["embedding_size"] * len(channels)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return vectors (rows, words, width)."""
        return torch.cat([channel(ids) for channel in self.values()], dim=-1)


class BiLSTM(nn.Module):
    """The last states of an LSTM in each direction, with a projection and tanh if it has one."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        settings = config["architecture"]
        self.embeddings = WordEmbeddings(config)
        sizes = self.embeddings.width, settings["hidden"]
        self.ahead, self.back = (nn.LSTM(*sizes, batch_first=True) for _ in range(2))
        self.width = settings.get("width", 2 * settings["hidden"])
        if "width" in settings:
            self.projection = nn.Linear(2 * settings["hidden"], self.width, bias=False)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors (rows, width)."""
        vectors = self.embeddings(ids)
        columns = torch.arange(ids.shape[1], device=ids.device)
        places = lengths[:, None] - 1 - columns
        places = torch.where(places >= 0, places, columns)
        reverse = vectors.gather(1, places[:, :, None].expand_as(vectors))
        rows = torch.arange(len(ids), device=ids.device)
        read = ((self.ahead, vectors), (self.back, reverse))
        states = torch.cat([net(part)[0][rows, lengths - 1] for net, part in read], dim=-1)
        return torch.tanh(self.projection(states)) if hasattr(self, "projection") else states


class CNN(nn.Module):
    """Convolutions over words with max pooling."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        settings = config["architecture"]
        self.embeddings = WordEmbeddings(config)
        layers = [
            nn.Conv1d(self.embeddings.width, settings["filters"], size)
            for size in settings["widths"]
        ]
        self.filters = nn.ModuleList(layers)
        self.width = settings["filters"] * len(layers)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors (rows, width)."""
        vectors = self.embeddings(ids) * inside(ids, lengths)[:, :, None]
        missing = max(layer.kernel_size[0] for layer in self.filters) - ids.shape[1]
        vectors = nn.functional.pad(vectors, (0, 0, 0, max(0, missing))).transpose(1, 2)
        pooled = []
        for layer in self.filters:
            answers = torch.relu(layer(vectors))
            windows = (lengths - layer.kernel_size[0] + 1).clamp(min=1)
            pooled.append((answers * inside(answers[:, 0], windows)[:, None]).amax(2))
        return torch.cat(pooled, dim=1)


class Ngrams(nn.Module):
    """The mean of the vectors of n-grams, which are hashed into a table."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        settings = config["architecture"]
        self.longest, self.width = settings["ngrams"], settings["dimensions"]
        self.table = nn.Embedding(settings["buckets"], self.width)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors (rows, width)."""
        keys, places, counted = ids, [], []
        for size in range(1, min(self.longest, ids.shape[1]) + 1):
            if size > 1:
                keys = keys[:, :-1] * MULTIPLIER + ids[:, size - 1 :] + size
            places.append((keys ^ (keys >> 29)) % self.table.num_embeddings)
            counted.append(inside(keys, lengths - size + 1))
        every = torch.cat(counted, 1)
        total = (self.table(torch.cat(places, 1)) * every[:, :, None]).sum(1)
        return total / every.sum(1, keepdim=True).clamp(min=1)


class LayerMeans(nn.Module):
    """The means, over all tokens but the first, of the states of a transformer's last layers.

    With a width, a linear layer maps them to that many values.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        from transformers import AutoConfig, AutoModel

        super().__init__()
        self.model = AutoModel.from_config(AutoConfig.for_model(**config["pretrained"]))
        if getattr(self.model, "pooler", None) is not None:
            self.model.pooler = None
        self.last, width = config["architecture"]["last"], config["architecture"].get("width")
        means = self.last * self.model.config.hidden_size
        self.width = width or means
        self.projection = nn.Linear(means, width) if width else nn.Identity()

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors (rows, width)."""
        counted = inside(ids, lengths)
        outputs = self.model(ids, attention_mask=counted.long(), output_hidden_states=True)
        counted[:, 0] = False
        states = torch.cat(outputs.hidden_states[-self.last :], dim=-1).float()
        total = (states * counted[:, :, None]).sum(1)
        means = total / counted.sum(1, keepdim=True).clamp(min=1)
        if isinstance(self.projection, nn.Linear):  # which half() and bfloat16() convert
            means = means.to(self.projection.weight.dtype)
        return self.projection(means)


MULTIPLIER = 0x9E3779B97F4A7C15 - (1 << 64)
NETWORKS = {"bilstm": BiLSTM, "bilstm_sra": BiLSTM, "cnn": CNN, "linear": Ngrams, "dse": LayerMeans}


class DistilledEncoder(nn.Module):
    """A sentence encoder and its tokenizer, which truncates long texts itself.

    The configuration has the ids of the padding and of the token that a text without words becomes.
    """

    save_in_root = True
    """Tells sentence-transformers where to look for this file."""

    def __init__(self, config: dict[str, Any], tokenizer: Tokenizer) -> None:
        super().__init__()
        self.config, self.tokenizer = config, tokenizer
        self.encoder = NETWORKS[config["architecture"]["architecture"]](config)

    @property
    def max_seq_length(self) -> int:
        """How many words of a text are read."""
        return self.tokenizer.truncation["max_length"]

    @max_seq_length.setter
    def max_seq_length(self, count: int) -> None:
        self.tokenizer.enable_truncation(count)

    def get_embedding_dimension(self) -> int:
        """Return how many values a vector has."""
        return self.encoder.width

    get_sentence_embedding_dimension = get_embedding_dimension

    def tokenize(self, texts: list[str], **_: Any) -> dict[str, torch.Tensor]:
        """Return the words' ids, padded, and which of them are words."""
        unknown, padding = [self.config["unknown"]], self.config["padding"]
        rows = [row.ids or unknown for row in self.tokenizer.encode_batch_fast(texts)]
        parts = [torch.tensor(row) for row in rows]
        ids = nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=padding)
        lengths = torch.tensor([len(row) for row in rows])
        return {"input_ids": ids, "attention_mask": inside(ids, lengths).long()}

    def preprocess(
        self, inputs: list[str], prompt: str | None = None, **_: Any
    ) -> dict[str, torch.Tensor]:
        """Return what :meth:`tokenize` does, for texts with a prompt before them."""
        return self.tokenize([(prompt or "") + text for text in inputs])

    def forward(self, features: dict[str, torch.Tensor], **_: Any) -> dict[str, torch.Tensor]:
        """Add the sentence vectors, (rows, width)."""
        lengths = features["attention_mask"].sum(1)
        return features | {"sentence_embedding": self.encoder(features["input_ids"], lengths)}

    @classmethod
    def load(cls, path: str) -> Self:
        """Load what :meth:`save` wrote."""
        folder = Path(path)
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        module = cls(config, Tokenizer.from_file(str(folder / TOKENIZER)))
        module.encoder.load_state_dict(load_file(folder / WEIGHTS))
        return module

    def save(self, path: str, **_: Any) -> None:
        """Write configuration, tokenizer and weights."""
        folder = Path(path)
        (folder / CONFIG).write_text(json.dumps(self.config, indent=2), encoding="utf-8")
        self.tokenizer.save(str(folder / TOKENIZER))
        tensors = {name: t.contiguous() for name, t in self.encoder.state_dict().items()}
        save_file(tensors, folder / WEIGHTS)


def inside(ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return bool (rows, columns): whether a column is within the row's length."""
    return torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
