"""Word ids of texts: what a student's tokenizer returns, at about three times its speed.

Small students spend most of their time here.  Python's regular expressions and a dictionary are far
faster than the tokenizer on one thread.  They split ASCII text as its own pattern does, which
covers more of Unicode; all other text goes to the tokenizer.
"""

import re
from collections.abc import Sequence
from itertools import chain

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from pipeline_lib.base.text import MASK
from pipeline_lib.base.words import ASCII, ASCII_WITHOUT_APOSTROPHES, word_splitter
from pipeline_lib.text.ragged import PAD_ID, Sentences

_ANY = re.compile(ASCII, re.ASCII)
_NO_APOSTROPHE = re.compile(ASCII_WITHOUT_APOSTROPHES, re.ASCII)
_MOST_REMEMBERED = 100_000
"""Words read by their pieces whose ids are kept."""


class WordNumbers:
    """The words of one tokenizer, and their ids."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._unknown = tokenizer.token_to_id(MASK)
        self._is_open = isinstance(tokenizer.model, WordPiece)
        self._numbers = (_Pieces if self._is_open else _Words)(tokenizer, self._unknown)
        self._lowercase = tokenizer.normalizer is not None
        # A tokenizer that was saved with another pattern splits by that one.
        splitter = tokenizer.pre_tokenizer.__getstate__()
        self._is_ours = splitter == word_splitter().__getstate__()

    def number(self, texts: Sequence[str], limit: int) -> Sentences:
        """Split each text into words, and return the first ``limit`` ids."""
        rows: list[list[int] | None] = [self._quickly(text, limit) for text in texts]
        others = [number for number, row in enumerate(rows) if row is None]
        encodings = self._tokenizer.encode_batch_fast([texts[number] for number in others])
        for number, encoding in zip(others, encodings, strict=True):
            rows[number] = encoding.ids[:limit]
        # A text without a word is one unknown word: every row needs a length of at least 1.
        return Sentences.from_lists([row or [self._unknown] for row in rows], {}, PAD_ID)

    def of_words(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of words as the tokenizer would assign them, int32, flat.

        :returns: them, and how many each word has, int64 (words,): its pieces', if it has to be
            read by them, or else 1.
        """
        normalise = self._tokenizer.normalizer.normalize_str if self._lowercase else str
        rows = [self._ids([MASK if w == MASK else normalise(w)]) for w in words]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return np.fromiter(chain.from_iterable(rows), np.int32, lengths.sum()), lengths

    def _quickly(self, text: str, limit: int) -> list[int] | None:
        # A bracket may start one of the tokenizer's special tokens.
        if not (self._is_ours and text.isascii()) or "[" in text:
            return None
        pattern = _ANY if "'" in text else _NO_APOSTROPHE
        words = pattern.findall(text.lower() if self._lowercase else text)
        return self._ids(words[:limit])[:limit]

    def _ids(self, words: Sequence[str]) -> list[int]:
        numbers = map(self._numbers.__getitem__, words)
        return [*(chain.from_iterable(numbers) if self._is_open else numbers)]


class _Words(dict[str, int]):
    """Ids by word; other words get the id of the unknown word (and are not stored)."""

    def __init__(self, tokenizer: Tokenizer, unknown: int) -> None:
        super().__init__(tokenizer.get_vocab())
        self._unknown = unknown

    def __missing__(self, word: str) -> int:
        return self._unknown


class _Pieces(dict[str, tuple[int, ...]]):
    """Ids by word; other words have those of their pieces, of which some are remembered."""

    def __init__(self, tokenizer: Tokenizer, unknown: int) -> None:
        super().__init__({word: (number,) for word, number in tokenizer.get_vocab().items()})
        self._model = tokenizer.model
        self._most = len(self) + _MOST_REMEMBERED

    def __missing__(self, word: str) -> tuple[int, ...]:
        ids = tuple(token.id for token in self._model.tokenize(word))
        if len(self) < self._most:
            self[word] = ids
        return ids
