r"""The project's word pattern in a form that other regular-expression engines read alike.

:data:`~pipeline_lib.text.words.PATTERN` is written for the tokenizers library, whose engine takes
letters of every script for ``\w``.  JavaScript's, which transformers.js uses, takes only ASCII, and
rejects ``(?i:…)`` before 2025.  Here the character classes are spelled out.
"""

from functools import cache

from tokenizers import Regex, Tokenizer
from tokenizers.pre_tokenizers import PreTokenizer, Split

from pipeline_lib.text.words import UNSPACED, word_splitter

_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼½¾"
"""What the tokenizers library takes for ``\\w`` and for a space, spelled out."""
_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPACED = rf"(?:(?![{''.join(UNSPACED.values())}])[{_WORD}])"
_NOT = rf"[nN]['’][tT](?![{_WORD}])"
PORTABLE = (
    r"\[MASK\]"
    rf"|{_NOT}|['’](?:[sSſ]|[mM]|[dD]|[rR][eE]|[vV][eE]|[lL][lL])(?![{_WORD}])"
    rf"|{_SPACED}+?(?={_NOT})"
    rf"|\p{{Nd}}+(?:[.,]\p{{Nd}}+)*|[{''.join(UNSPACED.values())}]\p{{M}}*|{_SPACED}+"
    rf"|\.{{2,}}|[^{_WORD}{_SPACE}]"
)


@cache
def portable_splitter() -> PreTokenizer:
    """Return a splitter that is equivalent to :func:`~pipeline_lib.text.words.word_splitter`."""
    return Split(Regex(PORTABLE), behavior="removed", invert=True)


def make_portable(tokenizer: Tokenizer) -> None:
    """Make a tokenizer split by the portable pattern, if it splits by the project's."""
    _exchange(tokenizer, word_splitter(), portable_splitter())


def make_quick(tokenizer: Tokenizer) -> None:
    """Make it split by the project's pattern again, for which there are faster implementations."""
    _exchange(tokenizer, portable_splitter(), word_splitter())


def _exchange(tokenizer: Tokenizer, old: PreTokenizer, new: PreTokenizer) -> None:
    current = tokenizer.pre_tokenizer
    if current is not None and current.__getstate__() == old.__getstate__():
        tokenizer.pre_tokenizer = new
