"""What a word is, defined once for the whole project.

Augmentation, vocabulary and the students' tokenizer all split text by the one pattern below, so a student sees the
same words in training and in use.  The pattern follows the Penn Treebank where that matters for tagging: ``don't``
is ``do`` ``n't``, ``it's`` is ``it`` ``'s``.  In a script that has no spaces between words, each character is one,
with the marks above and below it; that is how BERT reads Chinese, too (Devlin et al. 2019, multilingual models).
"""

from collections.abc import Sequence
from functools import cache

from tokenizers import Regex
from tokenizers.pre_tokenizers import PreTokenizer, Split

UNSPACED = {
    "Chinese or Japanese": "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff",
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Burmese": "\u1000-\u109f\uaa60-\uaa7f",
    "Khmer": "\u1780-\u17ff",
}
"""The characters of scripts whose words have no spaces between them."""
_UNSPACED = "".join(UNSPACED.values())

ASCII_WITHOUT_APOSTROPHES = r"\d+(?:[.,]\d+)*|\w+|\.{2,}|[^\w\s]"
"""What the pattern comes to in ASCII, in a text without apostrophes and masked words."""
ASCII = (
    r"\[MASK\]"
    r"|(?i:n['’]t\b|['’](?:s|m|d|re|ve|ll)\b|\w+?(?=n['’]t\b))"
    rf"|{ASCII_WITHOUT_APOSTROPHES}"
)
"""What the pattern comes to in ASCII."""
_SPACED = rf"(?:(?![{_UNSPACED}])\w)"
PATTERN = ASCII.replace(r"\w+|", rf"[{_UNSPACED}]\p{{M}}*|{_SPACED}+|").replace(r"\w+?", rf"{_SPACED}+?")


@cache
def word_splitter() -> PreTokenizer:
    """Return the pre-tokenizer that cuts text into words and drops the spaces between them."""
    return Split(Regex(PATTERN), behavior="removed", invert=True)


def split_words(text: str) -> tuple[list[str], list[bool]]:
    """Split ``text`` into words; the second list says which words are followed by a space."""
    pieces = word_splitter().pre_tokenize_str(text)
    words = [word for word, _ in pieces]
    starts = [span[0] for _, span in pieces[1:]]
    ends = [span[1] for _, span in pieces[:-1]]
    return words, [start > end for start, end in zip(starts, ends, strict=True)] + [False] * bool(words)


def join_words(words: Sequence[str], spaces: Sequence[bool]) -> str:
    """Put words and spaces together: the inverse of :func:`split_words`, with single spaces."""
    return "".join(word + " " * space for word, space in zip(words, spaces, strict=True)).rstrip(" ")
