"""A distilled sentence encoder, as a module of sentence-transformers.

    SentenceTransformer("folder", trust_remote_code=True).encode(["A sentence."])

This file and those that it imports are copied into an exported folder: they are the code that ``trust_remote_code``
runs.  Besides torch they need tokenizers and safetensors, and for a transformer, transformers.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import nn

# Some releases of transformers copy only the files that this one names, not those that they name.
from .architectures import build_encoder
from .biattentive import BiAttentiveReader  # noqa: F401
from .encoders import BiLSTMEncoder  # noqa: F401
from .layers import (
    Dropout,  # noqa: F401
    WordEmbeddings,  # noqa: F401
    inside,
)
from .siamese import SiameseTransformerEncoder  # noqa: F401
from .transformer import TransformerReader  # noqa: F401

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"


class DistilledEncoder(nn.Module):
    """A sentence encoder and its tokenizer, which truncates long texts itself.

    The configuration has the ids of the padding and of the token that a text without words becomes.
    """

    save_in_root = True
    """Tells sentence-transformers where to look for this file."""

    def __init__(self, config: dict[str, Any], tokenizer: Tokenizer) -> None:
        super().__init__()
        self.config, self.tokenizer = config, tokenizer
        settings = SimpleNamespace(**config["architecture"])
        sizes = config["vocab_size"], config["embedding_size"]
        self.encoder = build_encoder(settings, *sizes, config.get("pretrained"))

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

    def preprocess(self, inputs: list[str], prompt: str | None = None, **_: Any) -> dict[str, torch.Tensor]:
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
