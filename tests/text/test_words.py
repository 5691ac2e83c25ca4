"""Splitting and joining words, and the students' tokenizer, which has to split in the same way."""

import pytest

from pipeline_lib.base.text import MASK
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.text.words import join_words, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A film, plain.", ["A", "film", ",", "plain", "."]),
        ("I don't know", ["I", "do", "n't", "know"]),
        ("it's they’re HE'LL", ["it", "'s", "they", "’re", "HE", "'LL"]),
        ("CAN'T couldn’t", ["CA", "N'T", "could", "n’t"]),
        ("rock 'n' roll's", ["rock", "'", "n", "'", "roll", "'s"]),
        ("3.14, 1,000,000.", ["3.14", ",", "1,000,000", "."]),
        ("so ... dull..", ["so", "...", "dull", ".."]),
        ("a [MASK] b", ["a", MASK, "b"]),
        ("x[MASK]y", ["x", MASK, "y"]),
        ("[mask]", ["[", "mask", "]"]),
        ("naïve 東京 Ω", ["naïve", "東", "京", "Ω"]),
        ("我喜欢film,2.5元", ["我", "喜", "欢", "film", ",", "2.5", "元"]),
        ("映画n't don't", ["映", "画", "n't", "do", "n't"]),
        ("รื่องนี้ ၁ ភាសា", ["รื่", "อ", "ง", "นี้", "၁", "ភា", "សា"]),
        ("यह फिल्म है", ["यह", "फिल्म", "है"]),
        ("هذا الفيلم", ["هذا", "الفيلم"]),
        ("under_score e-mail", ["under_score", "e", "-", "mail"]),
        ("“curly”", ["“", "curly", "”"]),
        ("!!", ["!", "!"]),
    ],
)
def test_words_by_hand(text: str, words: list[str]) -> None:
    assert split_words(text)[0] == words


def test_joining_is_the_inverse_up_to_blanks(texts: list[str]) -> None:
    assert split_words("I don't  know.") == (["I", "do", "n't", "know", "."], [True, False, True, False, False])
    assert split_words("  ") == ([], [])
    # Joining is the inverse up to blanks.
    assert len(texts) > 10
    for text in texts:
        words, spaces = split_words(text)
        assert len(words) == len(spaces)
        assert join_words(words, spaces) == " ".join(text.split())
        assert split_words(join_words(words, spaces)) == (words, spaces)
    # Joining drops the last blank alone.
    assert join_words(["a", "b"], [False, True]) == "ab"
    assert join_words(["a", "b"], [True, True]) == "a b"
    assert join_words([], []) == ""
    # No character is lost.
    for text in texts:
        assert "".join(split_words(text)[0]) == "".join(text.split())


@pytest.mark.parametrize("lowercase", [False, True])
def test_tokenizer_splits_as_the_project_does(texts: list[str], text_words: list[str], lowercase: bool) -> None:
    words = sorted({w.lower() for w in text_words}) if lowercase else text_words
    tokenizer = build_tokenizer(words, lowercase)
    for text in texts:
        expected = split_words(text)[0]
        if lowercase:
            expected = [w if w == MASK else w.lower() for w in expected]
        assert tokenizer.encode(text).tokens == expected, text
