"""Words that a tokenizer does not know: a model reads all of them as one and the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from tokenizers import Encoding, Tokenizer

from pipeline_lib.base.text import Text


@dataclass(frozen=True)
class Unknown:
    """What of a text a tokenizer does not know.

    :ivar words: the unknown words, in their order, each once.
    :ivar share: how much of the text's words, or word pieces, they are, punctuation apart.
    """

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
