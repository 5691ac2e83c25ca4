"""What a word is, defined once for the whole project.

Augmentation, vocabulary and the students' tokenizer all split text by the one pattern below, so a
student sees the same words in training and in use.  The pattern follows the Penn Treebank where
that matters for tagging: ``don't`` is ``do`` ``n't``, ``it's`` is ``it`` ``'s``.
"""

from collections.abc import Sequence
from functools import cache

from tokenizers import Regex
from tokenizers.pre_tokenizers import PreTokenizer, Split

PATTERN_WITHOUT_APOSTROPHES = r"\d+(?:[.,]\d+)*|\w+|\.{2,}|[^\w\s]"
"""The part of the pattern that is needed for a text without apostrophes and masked words."""

PATTERN = (
    r"\[MASK\]"
    r"|(?i:n['’]t\b|['’](?:s|m|d|re|ve|ll)\b|\w+?(?=n['’]t\b))"
    rf"|{PATTERN_WITHOUT_APOSTROPHES}"
)


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
    return words, [start > end for start, end in zip(starts, ends, strict=True)] + [False] * bool(
        words
    )


def join_words(words: Sequence[str], spaces: Sequence[bool]) -> str:
    """Put words and spaces together: the inverse of :func:`split_words`, with single spaces."""
    return "".join(word + " " * space for word, space in zip(words, spaces, strict=True)).rstrip(
        " "
    )
