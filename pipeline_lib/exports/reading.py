"""Reads texts as a student does, without its network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tokenizers import Tokenizer

from pipeline_lib.params import StudentSettings
from pipeline_lib.storage.columns import Text
from pipeline_lib.students.student import numbering
from pipeline_lib.text.fast_tokenizer import WordNumbers
from pipeline_lib.text.pieces import Pieces
from pipeline_lib.text.ragged import Sentences


@dataclass(frozen=True)
class Reader:
    """A student's tokenizer, and how it reads texts.

    :ivar pair: whether it compares two sentences.
    """

    tokenizer: Tokenizer | Pieces
    settings: StudentSettings
    pair: bool

    @property
    def apart(self) -> bool:
        """Whether the sentences of a pair are encoded separately."""
        return self.pair and self.settings.reads != "sequence"

    @property
    def segments(self) -> bool:
        """Whether it is told which sentence of a pair a token belongs to."""
        pieces = isinstance(self.tokenizer, Pieces) and self.tokenizer.segments
        return self.pair and not self.apart and pieces

    def encode(self, texts: Sequence[Text]) -> Sentences:
        """Tokenize each text or pair into ids, as the student does."""
        if not self.apart:
            return self._encode(texts)
        first, second = zip(*texts, strict=True)
        return replace(self._encode(first), second=self._encode(second))

    def _encode(self, texts: Sequence[Text]) -> Sentences:
        return self._words.number(texts, self.settings.max_words)

    @cached_property
    def _words(self) -> WordNumbers | Pieces:
        return numbering(self.tokenizer)
