"""What tests of several modules share: prepared examples, recipes, lexicons, a store."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.hashing import sequence_keys, word_keys
from pipeline_lib.base.words import join_words, split_words
from pipeline_lib.corpora.augmentation.lexicon import Lexicon, count_words, read_lexicon
from pipeline_lib.corpora.tasks.preparation import prepared_schema
from pipeline_lib.params import Recipe, Task
from pipeline_lib.shards.shard_sets import write_shard
from tests.kit.archives import write_files
from tests.kit.made_up import made_up_task

SCHEMA = prepared_schema(pair=False, label=pa.int32(), tagged=True)


def words_key(words: Sequence[str]) -> int:
    return int(sequence_keys(word_keys(words), np.array([0, len(words)]))[0])


@pytest.fixture
def store_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POTSTILL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def make_examples() -> Callable[..., pa.Table]:
    """Return a maker of prepared tables; blanks stand between all words by default."""

    def make(
        words: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]],
        spaces: Sequence[Sequence[bool]] | None = None,
        labels: Sequence[int] | None = None,
    ) -> pa.Table:
        rows = len(words)
        spaces = spaces or [[True] * (len(ws) - 1) + [False] for ws in words]
        columns = [
            [words_key(ws) for ws in words],
            labels or [number % 2 for number in range(rows)],
            [join_words(ws, ss) for ws, ss in zip(words, spaces, strict=True)],
            words,
            spaces,
            tags,
        ]
        arrays = [pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types, strict=True)]
        return pa.table(arrays, schema=SCHEMA)

    return make


@pytest.fixture
def make_lexicon(tmp_path: Path) -> Callable[[dict[str, dict[str, int]]], Lexicon]:
    """Return a maker of lexicons from tag to word to count."""

    def make(counts: dict[str, dict[str, int]]) -> Lexicon:
        pairs = [(word, tag) for tag, words in counts.items() for word, n in words.items() for _ in [1] * n]
        words, tags = [[word for word, _ in pairs]], [[tag for _, tag in pairs]]
        kind = pa.list_(pa.string())
        path = tmp_path / "lexicon.arrow"
        write_shard(path, count_words(pa.array(words, kind), pa.array(tags, kind)))
        return read_lexicon(path)

    return make


@pytest.fixture
def make_recipe() -> Callable[..., Recipe]:
    def make(**changes: Any) -> Recipe:
        values = {"p_mask": 0.1, "p_pos": 0.1, "p_ngram": 0.25, "ngram_max": 5}
        return Recipe.model_validate(values | changes)

    return make


TEXTS = [
    "A film, plain and good.",
    "I don't know why it's so ... dull!",
    "they’re [MASK] and we couldn’t care",
    "  two   blanks\tand a tab ",
    "3.14 or 1,000,000 of 20",
    "naïve Ünïcode straße Ω 東京 café",
    "under_score e-mail a/b (c) “curly” ‘quotes’",
    "CAN'T WON'T I'LL He'd",
    "n't 's '",
    "x[MASK]y [MASK][MASK]",
    "emoji 😀 and … dots..",
    "[mask] [ MASK ]",
    "",
    "   ",
    "one",
]
"""Texts with everything that splitting has to get right."""


@pytest.fixture
def texts() -> list[str]:
    return list(TEXTS)


@pytest.fixture
def text_words() -> list[str]:
    """Return the distinct words of ``texts``, [MASK] left out."""
    return sorted({w for text in TEXTS for w in split_words(text)[0]} - {"[MASK]"})


@pytest.fixture
def make_task() -> Callable[..., Task]:
    return made_up_task


@pytest.fixture
def model_files() -> dict[str, bytes]:
    """Return the files of a tiny BERT-like classifier: 8 word pieces, 3 numbers each."""
    from safetensors.numpy import save
    from tokenizers import Tokenizer, models, pre_tokenizers

    pieces = ["[PAD]", "[UNK]", "a", "film", "##s", "[unused0]", "dull", "good"]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(1)
    tokenizer.enable_padding(length=4)
    table = np.arange(24, dtype=np.float32).reshape(8, 3)
    config = {"architectures": ["BertForSequenceClassification"], "model_type": "bert"}
    return {
        "config.json": json.dumps(config).encode(),
        "tokenizer.json": tokenizer.to_str().encode(),
        "model.safetensors": save({"bert.embeddings.word_embeddings.weight": table}),
    }


@pytest.fixture
def model_folder(tmp_path: Path, model_files: dict[str, bytes]) -> Path:
    return write_files(tmp_path / "inputs" / "model", model_files)
