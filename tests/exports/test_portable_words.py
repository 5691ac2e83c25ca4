"""The pattern that other engines read splits as the project's own."""

import random

from tokenizers import Tokenizer, models

from pipeline_lib.base.words import word_splitter
from pipeline_lib.exports.folders import make_portable, make_quick, portable_splitter

PARTS = ["n't", "N’T", "'s", "'ſ", "’LL", "'re", "'d", "[MASK]", "...", "3.14", "1,000", "x", "ca"]
SIGNS = [chr(c) for c in range(1, 0x3100) if c not in range(0xD800, 0xE000)]
LATER = [chr(c) for c in range(0x3100, 0x1F700, 97) if c not in range(0xD800, 0xE000)]


def test_it_splits_as_the_projects_pattern(texts: list[str]) -> None:
    draw = random.Random(1)
    mixed = ["".join(draw.choices([*PARTS, " "] * 40 + SIGNS, k=12)) for _ in range(2000)]
    every = ["".join([sign, " a", sign, "1", sign]) for sign in SIGNS + LATER]
    own, portable = word_splitter(), portable_splitter()
    for text in [*texts, *mixed, *every]:
        assert portable.pre_tokenize_str(text) == own.pre_tokenize_str(text), repr(text)


def test_tokenizers_of_another_pattern_keep_it() -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    make_portable(tokenizer)
    assert tokenizer.pre_tokenizer is None
    tokenizer.pre_tokenizer = word_splitter()
    make_portable(tokenizer)
    assert tokenizer.pre_tokenizer.__getstate__() == portable_splitter().__getstate__()
    make_quick(tokenizer)
    assert tokenizer.pre_tokenizer.__getstate__() == word_splitter().__getstate__()
