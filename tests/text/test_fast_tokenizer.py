"""Words are numbered as the student's tokenizer numbers them, whatever way they take."""

import itertools
import random

import pytest
from tokenizers import Regex, Tokenizer
from tokenizers.pre_tokenizers import Split

from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.text import fast_tokenizer
from pipeline_lib.text.fast_tokenizer import WordNumbers
from pipeline_lib.text.words import split_words

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
    texts = [*drawn_texts(), "a" * 100, "a" * 101]
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
