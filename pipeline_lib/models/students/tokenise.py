"""Reads texts as a student does: its tokenizer's files, the ids of sentences and pairs, and the words it does not know.

Exported students read by it too, so it imports neither torch nor transformers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Encoding, Tokenizer

from pipeline_lib.base.text import MASK, Text
from pipeline_lib.text.fast_tokenizer import WordNumbers
from pipeline_lib.text.pieces import Pieces, load_tokenizer, save_tokenizer
from pipeline_lib.text.ragged import Sentences

if TYPE_CHECKING:
    from pipeline_lib.params.students import Reads


PAD = "[PAD]"
SIGNS = {"pad": PAD, "unk": MASK}


@dataclass(frozen=True)
class Unknown:
    """What of a text is not known: the words, each once, and their share of all words or pieces, punctuation apart."""

    words: list[str]
    share: float

    @property
    def is_all(self) -> bool:
        """Whether nothing of the text is known but punctuation."""
        return self.share == 1.0


@dataclass(frozen=True)
class KnownWords:
    """A tokenizer, and which of its words stands for those that it does not know.

    :ivar unknown: the number of that word; None: there is none, since it knows every byte.
    :ivar limit: how many words or word pieces of a text are read.
    """

    tokenizer: Tokenizer
    unknown: int | None
    limit: int

    def none_in(self, texts: Sequence[Text]) -> np.ndarray:
        """Return which texts, or pairs, have words of which none is known, bool (texts,)."""
        if self.unknown is None:
            return np.zeros(len(texts), bool)
        rows, telling = self._ids(texts), self._telling
        return np.array([self.unknown in ids and telling.isdisjoint(ids) for ids in rows], bool)

    def missing(self, texts: Sequence[str]) -> list[Unknown]:
        """Return what each text has that is not known."""
        answers = [Unknown([], 0.0)] * len(texts)
        if self.unknown is None:
            return answers
        # Without offsets first, which take longer: many texts have no unknown word.
        rows = [row for row, ids in enumerate(self._ids(texts)) if self.unknown in ids]
        texts = [texts[row] for row in rows]
        encodings = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        for row, text, encoding in zip(rows, texts, encodings, strict=True):
            answers[row] = self._missing(text, encoding)
        return answers

    @cached_property
    def _telling(self) -> set[int]:
        """The numbers of known words that are not punctuation."""
        words = self.tokenizer.get_vocab().items()
        return {number for word, number in words if _is_word(word)} - {self.unknown}

    def _ids(self, texts: Sequence[Text]) -> list[list[int]]:
        joined = [text if isinstance(text, str) else " ".join(text) for text in texts]
        # Its truncation stays: exported students read by it.
        self.tokenizer.no_padding()
        encodings = self.tokenizer.encode_batch_fast(joined, add_special_tokens=False)
        return [encoding.ids[: self.limit] for encoding in encodings]

    def _missing(self, text: str, encoding: Encoding) -> Unknown:
        parts = [text[start:end] for start, end in encoding.offsets[: self.limit]]
        tokens = list(zip(parts, encoding.ids, strict=False))
        unknown = [part for part, number in tokens if number == self.unknown]
        known = sum(number != self.unknown and _is_word(part) for part, number in tokens)
        return Unknown([*dict.fromkeys(unknown)], len(unknown) / (len(unknown) + known))


def _is_word(token: str) -> bool:
    return any(map(str.isalnum, token))


@dataclass(frozen=True)
class Reader:
    """A student's tokenizer, and how it reads texts.

    :ivar max_words: how many words or word pieces it reads of a sentence, or of a sequence.
    :ivar pair: whether it compares two sentences.
    """

    tokenizer: Tokenizer | Pieces
    reads: "Reads"
    max_words: int
    pair: bool

    @property
    def apart(self) -> bool:
        """Whether the sentences of a pair are encoded separately."""
        return self.pair and self.reads != "sequence"

    @property
    def segments(self) -> bool:
        """Whether it is told which sentence of a pair a token belongs to."""
        pieces = isinstance(self.tokenizer, Pieces) and self.tokenizer.segments
        return self.pair and not self.apart and pieces

    def encode(self, texts: Sequence[Text]) -> Sentences:
        """Tokenize each text or pair, truncated to the student's maximum length."""
        if not self.apart:
            return self._encode(texts)
        first, second = zip(*texts, strict=True)
        return replace(self._encode(first), second=self._encode(second))

    @property
    def words(self) -> KnownWords:
        """The words that it knows."""
        return known_words(self.tokenizer, self.max_words)

    def _encode(self, texts: Sequence[Text]) -> Sentences:
        return self._words.number(texts, self.max_words)

    @cached_property
    def _words(self) -> WordNumbers | Pieces:
        return numbering(self.tokenizer)


def numbering(tokenizer: Tokenizer | Pieces) -> WordNumbers | Pieces:
    """Return a fast equivalent of a student's tokenizer, of words or word pieces."""
    return tokenizer if isinstance(tokenizer, Pieces) else WordNumbers(tokenizer)


def known_words(tokenizer: Tokenizer | Pieces, limit: int) -> KnownWords:
    """Return the words that a student's tokenizer knows; it reads ``limit`` words or word pieces of a text."""
    if isinstance(tokenizer, Pieces):
        return KnownWords(tokenizer.tokenizer, tokenizer.unknown_id, limit)
    return KnownWords(tokenizer, tokenizer.token_to_id(MASK), limit)


def mask_sign(tokenizer: Tokenizer | Pieces) -> str:
    """Return what a student with this tokenizer reads for a masked word."""
    return tokenizer.mask_sign if isinstance(tokenizer, Pieces) else MASK


def write_tokenizer(folder: Path, tokenizer: Tokenizer | Pieces) -> None:
    """Save a student's tokenizer in its folder, where :func:`read_tokenizer` finds it."""
    if isinstance(tokenizer, Pieces):
        tokenizer.save(folder)
    else:
        save_tokenizer(folder, tokenizer, SIGNS)


def read_tokenizer(folder: Path, reads: "Reads") -> Tokenizer | Pieces:
    """Return the tokenizer saved with a student; a ValueError if it is missing or damaged."""
    return load_tokenizer(folder) if reads == "words" else Pieces.read(folder)
