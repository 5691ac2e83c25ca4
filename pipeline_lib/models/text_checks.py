"""What a model reads of texts: how much is cut, unknown to it, or in a script without spaces."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from pipeline_lib.base.text import Text
from pipeline_lib.base.words import UNSPACED, split_words
from pipeline_lib.text.pieces import Pieces, load_config, load_fast_tokenizer

_OTHERS = {
    "Tibetan": "\u0f00-\u0fff",
    "Cyrillic": "\u0400-\u052f",
    "Greek": "\u0370-\u03ff",
    "Hebrew": "\u0590-\u05ff",
    "Arabic": "\u0600-\u06ff\u0750-\u077f",
    "Indic": "\u0900-\u0dff",
    "Korean": "\uac00-\ud7af",
    "Georgian": "\u10a0-\u10ff",
    "Armenian": "\u0530-\u058f",
    "Ethiopic": "\u1200-\u137f",
}
_PATTERNS = {name: re.compile(f"[{signs}]") for name, signs in (UNSPACED | _OTHERS).items()}
_LETTER = re.compile(r"[^\W\d_]")
_MUCH = 0.05
"""A share of letters in unknown words above which a model does not know the language."""
_SPELT = {True: 1.2, False: 0.7}
"""Word pieces per character above which a model spells words, in scripts without spaces and others:
English takes 0.25 of a model of English, Chinese 1 of a model of Chinese."""


@dataclass(frozen=True)
class ScriptShare:
    """The most frequent script other than Latin.

    :ivar share: of all letters; :ivar is_unspaced: whether it has no spaces between words.
    """

    name: str
    share: float
    is_unspaced: bool


def other_script(texts: Sequence[Text]) -> ScriptShare | None:
    """Return the most frequent script of texts other than Latin; None if there is none."""
    whole = " ".join(part for text in texts for part in _sides(text))
    # Marks above and below letters are no letters to the pattern.
    counts = {name: len(pattern.findall(whole)) for name, pattern in _PATTERNS.items()}
    name = max(counts, key=counts.__getitem__)
    letters = max(_letters(whole), counts[name])
    return ScriptShare(name, counts[name] / letters, name in UNSPACED) if counts[name] else None


_SHARED = frozenset([
    "a", "alone", "am", "an", "as", "at", "beside", "call", "do", "done", "for", "front", "full",
    "had", "has", "he", "her", "hundred", "i", "in", "is", "me", "mine", "most", "must", "no",
    "of", "off", "on", "once", "one", "or", "over", "per", "say", "so", "some", "ten", "third",
    "to", "top", "under", "us", "via", "was", "we", "well", "while", "will",
])  # fmt: skip
"""English function words that are words of Dutch, French, German, Italian, Portuguese, Spanish or
a Scandinavian language, too."""


def english_share(texts: Sequence[Text]) -> float:
    """Return the share of the words of texts that are function words of English alone.

    Of English it is a quarter, of queries in it less, of other languages hardly any.
    """
    # Imported here: spaCy takes a second.
    from spacy.lang.en.stop_words import STOP_WORDS

    words = [word for text in texts for part in _sides(text) for word in split_words(part)[0]]
    lowered = [word.lower() for word in words if word[0].isalpha()]
    known = STOP_WORDS - _SHARED
    return sum(word in known for word in lowered) / max(1, len(lowered))


@dataclass(frozen=True)
class PieceCounts:
    """What a model's tokenizer makes of texts.

    :ivar lengths: word pieces of each text or pair, special tokens included, int64 (texts,).
    :ivar unknown: the share of the letters that are in unknown words; :ivar examples: of these.
    :ivar per_character: word pieces per character, spaces apart.
    """

    lengths: np.ndarray
    unknown: float
    examples: list[str]
    per_character: float

    def is_foreign(self, script: ScriptShare | None) -> bool:
        """Whether the model hardly knows the language of the texts, or not at all.

        :param script: theirs.
        """
        is_unspaced = script is not None and script.is_unspaced and script.share > 0.5
        return self.unknown > _MUCH or self.per_character > _SPELT[is_unspaced]


def count_pieces(folder: Path, texts: Sequence[Text]) -> PieceCounts:
    """Return what the tokenizer of a model's folder makes of texts."""
    pieces = Pieces.of(load_fast_tokenizer(folder), load_config(folder))
    backend = pieces.tokenizer
    backend.no_truncation()
    backend.no_padding()
    encodings = backend.encode_batch_fast(list(texts))
    special = backend.num_special_tokens_to_add(any(isinstance(text, tuple) for text in texts))
    lengths = np.array([len(encoding.ids) for encoding in encodings], np.int64)
    odd = [text for text, one in zip(texts, encodings, strict=True) if pieces.unknown_id in one.ids]
    sides = [part for text in odd for part in _sides(text)]
    words = Counter(_unknown(backend, pieces.unknown_id, sides))
    letters = max(1, sum(_letters(part) for text in texts for part in _sides(text)))
    unknown = sum(_letters(word) * count for word, count in words.items())
    total = int(lengths.sum()) - special * len(texts)
    examples = [word for word, _ in words.most_common(3)]
    characters = max(1, sum(len("".join(part.split())) for text in texts for part in _sides(text)))
    return PieceCounts(lengths, unknown / letters, examples, total / characters)


def _unknown(tokenizer: Tokenizer, number: int | None, texts: list[str]) -> Iterator[str]:
    """Yield the words of texts that have letters and are unknown to a tokenizer."""
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    for text, encoding in zip(texts, encodings, strict=True):
        for piece, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if piece == number and _letters(text[start:end]):
                yield text[start:end]


def _letters(text: str) -> int:
    return len(_LETTER.findall(text))


def _sides(text: Text) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text
