"""Which words of a text a tokenizer does not know."""

import numpy as np
import pytest

from pipeline_lib.base.text import MASK
from pipeline_lib.models.students.tokenise import KnownWords
from pipeline_lib.models.students.vocabulary import build_tokenizer

TOKENIZER = build_tokenizer(["a", "good", "film", ".", "2"], lowercase=True)
WORDS = KnownWords(TOKENIZER, TOKENIZER.token_to_id(MASK), 4)
CASES = {
    "a Good film.": ([], 0.0),
    "a zzz film": (["zzz"], 1 / 3),
    "zzz zzz qqq.": (["zzz", "qqq"], 1.0),
    "🎉": (["🎉"], 1.0),
    "🎉.": (["🎉"], 1.0),
    "🎉 film": (["🎉"], 1 / 2),
    "日本 2": (["日", "本"], 2 / 3),
    # Nothing beyond the limit is read.
    "zzz zzz zzz zzz film": (["zzz"], 1.0),
    "a a a a zzz": ([], 0.0),
    "...": (["..."], 1.0),
    ".": ([], 0.0),
    "": ([], 0.0),
    " \t": ([], 0.0),
}


@pytest.mark.parametrize("text", CASES)
def test_what_is_unknown_is_listed_and_measured(text: str) -> None:
    [unknown] = WORDS.missing([text])
    words, share = CASES[text]
    assert (unknown.words, unknown.share) == (words, pytest.approx(share))
    assert WORDS.none_in([text])[0] == unknown.is_all


def test_texts_keep_their_places_and_pairs_are_read_together() -> None:
    texts = [*CASES]
    assert [one.share for one in WORDS.missing(texts)] == [pytest.approx(share) for _, share in CASES.values()]
    pairs = [("zzz", "film"), ("zzz", "qqq"), ("", "")]
    np.testing.assert_array_equal(WORDS.none_in(pairs), [False, True, False])
    assert WORDS.missing([]) == [] and WORDS.none_in([]).shape == (0,)


def test_a_tokenizer_of_bytes_knows_everything() -> None:
    words = KnownWords(TOKENIZER, None, 4)
    assert not words.none_in(["zzz"]).any() and words.missing(["zzz"])[0].words == []


def test_the_tokenizer_truncates_as_before() -> None:
    tokenizer = build_tokenizer(["a"], lowercase=True)
    tokenizer.enable_truncation(3)
    KnownWords(tokenizer, tokenizer.token_to_id(MASK), 3).missing(["b b b b b"])
    assert len(tokenizer.encode("a a a a a").ids) == 3
