"""Splitting and joining words, and the students' tokenizer, which has to split in the same way."""

import itertools
import random

import pytest
from tokenizers import Regex, Tokenizer
from tokenizers.pre_tokenizers import Split

from pipeline_lib.base.text import MASK
from pipeline_lib.base.words import join_words, split_words
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.text import fast_tokenizer
from pipeline_lib.text.fast_tokenizer import WordNumbers


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
    assert len(texts) > 10
    for text in texts:
        words, spaces = split_words(text)
        assert len(words) == len(spaces)
        assert join_words(words, spaces) == " ".join(text.split())
        assert split_words(join_words(words, spaces)) == (words, spaces)
    assert join_words(["a", "b"], [False, True]) == "ab"
    assert join_words(["a", "b"], [True, True]) == "a b"
    assert join_words([], []) == ""
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


PIECES = ["n't", "'s", "'", "’t", "can", "N", "T", "x1", "3.14", "1,0", ".", "..", " ", "\t", "\n"]
PIECES += ["_", "[", "]", "[MASK]", "[PAD]", "[mask]", "-", "é", "n’t", "ſ", "²", "\u0301", "日本"]
PIECES += [*map(chr, range(128))]


def drawn_texts() -> list[str]:
    generator = random.Random(1)
    singles = [*PIECES, *(a + b for a, b in itertools.product(map(chr, range(128)), repeat=2))]
    return singles + ["".join(generator.choices(PIECES, k=generator.randint(1, 12))) for _ in singles]


def numbered(words: WordNumbers, texts: list[str], limit: int) -> list[list[int]]:
    found = words.number(texts, limit)
    bounds = zip(found.offsets, found.offsets[1:], strict=False)
    return [found.ids[start:end].tolist() for start, end in bounds]


def expected(tokenizer: Tokenizer, texts: list[str], limit: int) -> list[list[int]]:
    unknown = [tokenizer.token_to_id("[MASK]")]
    return [tokenizer.encode(text).ids[:limit] or unknown for text in texts]


@pytest.mark.parametrize("lowercase", [True, False])
def test_numbers_are_the_tokenizers(lowercase: bool) -> None:
    texts = drawn_texts()
    known = {w for t in texts for w in split_words(t.lower() if lowercase else t)[0]}
    # Every word has a number of its own, but for some that are unknown.
    known = {word for word in known if word not in ("can", "n't", "[MASK]")}
    tokenizer = build_tokenizer(sorted(known), lowercase)
    assert numbered(WordNumbers(tokenizer), texts, 5) == expected(tokenizer, texts, 5)


@pytest.mark.parametrize("remembered", [0, 10, 100_000])
def test_words_of_pieces_are_the_tokenizers(remembered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_tokenizer, "_MOST_REMEMBERED", remembered)
    pieces = [*"acn0123456789xyz.", *(f"##{sign}" for sign in "abcdefghijklmnop0123456789_.,é")]
    tokenizer = build_tokenizer([*pieces, "can", "##an", "x1"], True)
    texts = [*drawn_texts()[::2], "a" * 100, "a" * 101]
    words = WordNumbers(tokenizer)
    for limit in (1, 5):
        found = numbered(words, texts, limit)
        assert found == expected(tokenizer, texts, limit)
    assert len(set(map(tuple, found))) > 1000
    assert [len(row) for row in numbered(words, texts[-2:], 200)] == [100, 1]


def test_other_tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = build_tokenizer(["b", "a-b"], True)
    tokenizer.pre_tokenizer = Split(Regex(r"\S+"), behavior="removed", invert=True)
    texts = ["a-b", "b a-b", ""]
    assert numbered(WordNumbers(tokenizer), texts, 9) == expected(tokenizer, texts, 9)
    assert numbered(WordNumbers(tokenizer), ["b a-b"], 9) == [[2, 3]]
    # Most texts do not reach the tokenizer.
    words = WordNumbers(build_tokenizer(["a", "don", "n't"], True))
    reached: list[list[str]] = []

    class Reached:
        def encode_batch_fast(self, texts: list[str]) -> list[str]:
            reached.append(texts)
            return []

    monkeypatch.setattr(words, "_tokenizer", Reached())
    words.number(["A plain one.", "Don't", ""], 9)
    assert reached == [[]]
