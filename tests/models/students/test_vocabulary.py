"""Vocabularies: order of words, vectors for all of them, and one number for all that is unknown."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError
from safetensors.numpy import save_file
from threadpoolctl import threadpool_limits
from tokenizers import Tokenizer, models
from transformers import AutoTokenizer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import MASK
from pipeline_lib.models.students.tokenise import KnownWords, write_tokenizer
from pipeline_lib.models.students.vocabulary import (
    build_tokenizer,
    build_vocabulary,
    complete_vectors,
    count_normalised,
    count_words,
    load_vocabulary,
    random_vectors,
    reduce_vectors,
    save_vocabulary,
    select_words,
)
from pipeline_lib.params import Vocabulary
from pipeline_lib.text.fast_tokenizer import WordNumbers


def test_words_are_counted_and_chosen() -> None:
    counted = Counter({"b": 2, "a": 2, "c": 5, "rare": 1})
    assert select_words(counted, 1) == ["c", "a", "b", "rare"]
    assert select_words(counted, 2) == ["c", "a", "b"]
    assert select_words(counted, 9) == []
    # Counting as the tokenizer sees words.
    single = pa.table({"text": ["", ""], "words": [["Film", "film"], ["FILM"]]})
    pairs = pa.table({"text": [""], "words": [["film"]], "text_2": [""], "words_2": [["Ünï"]]})
    words = count_words([single, pairs.slice(0, 1), pairs.slice(1)])
    assert words == {"Film": 1, "film": 2, "FILM": 1, "Ünï": 1}
    assert count_normalised(words, True) == {"film": 4, "ünï": 1}
    assert count_normalised(["Film", "film"], True) == {"film": 2}
    assert count_normalised(words, False) == words


def test_unknown_words(tmp_path: Path) -> None:
    tokenizer = build_tokenizer(["a", "film"], True)
    assert (tokenizer.token_to_id("[PAD]"), tokenizer.token_to_id(MASK)) == (0, 1)
    assert tokenizer.encode("A [MASK] unheard Film").ids == [2, 1, 1, 3]
    assert tokenizer.get_vocab_size() == 4
    write_tokenizer(tmp_path, tokenizer)
    padded = AutoTokenizer.from_pretrained(tmp_path)(["a [MASK]", "A unheard film"], padding=True)
    assert padded["input_ids"] == [[2, 1, 0], [2, 1, 3]]
    assert padded["attention_mask"] == [[1, 1, 0], [1, 1, 1]]
    # Unknown words are read by their pieces.
    words = ["a", "film", "goer", "##goer", "##s", "un", "##he"]
    tokenizer = build_tokenizer(words, True)
    ids = {word: number for number, word in enumerate(["[PAD]", MASK, *words])}
    assert tokenizer.encode("A filmgoers").ids == [ids["a"], ids["film"], ids["##goer"], ids["##s"]]
    # A word of which some part is no piece is unknown as a whole.
    assert tokenizer.encode("film unheard [MASK]").ids == [ids["film"], 1, 1]


def test_pieces_are_the_models_first_in_the_words_scripts(tmp_path: Path) -> None:
    vocabulary = ["[PAD]", "[UNK]", "映", "Fi", "fi", "##lm", "film", "##g", "##s", "##x", "goes"]
    numbers = {piece: number for number, piece in enumerate(vocabulary)}
    Tokenizer(models.WordPiece(numbers, unk_token="[UNK]")).save(str(tmp_path / "tokenizer.json"))
    rows = np.outer(np.arange(len(vocabulary)), [1, 1]).astype(np.float32)
    save_file({"word_embeddings.weight": rows}, tmp_path / "model.safetensors")
    vectors = {"kind": "model", "model": "m"}
    params = {"lowercase": True, "extra_words": 0, "dimensions": None}
    every = ["fi", "##lm", "##g", "##s", "##x", "goes"]
    for count, added in ((0, []), (2, every[:2]), (9, every)):
        settings = Vocabulary(**params, pieces=count, vectors=vectors)
        tokenizer, table = build_vocabulary(["film", "seog"], settings, tmp_path)
        words = sorted(tokenizer.get_vocab(), key=tokenizer.token_to_id)
        assert words == ["[PAD]", MASK, "film", "seog", *added]
        found = np.delete(table[2:], 1, axis=0)
        expected = rows[[numbers[word] for word in ["film", *added]]]
        assert np.allclose(found / found[0], expected / expected[0])


def test_saving_and_reducing(tmp_path: Path) -> None:
    vectors = np.arange(8, dtype=np.float32).reshape(4, 2)
    save_vocabulary(tmp_path / "v", build_tokenizer(["a", "film"], True), vectors)
    tokenizer, table = load_vocabulary(tmp_path / "v")
    assert np.array_equal(table, vectors) and table.dtype == np.float32
    assert tokenizer.encode("A [MASK] film!").ids == [2, 1, 3, 1]
    assert WordNumbers(tokenizer).of_words(["Film", MASK, "x"])[0].tolist() == [3, 1, 1]
    # Reducing gives the same bytes on any number of cores.
    vectors = np.random.default_rng(0).normal(size=(4000, 384)).astype(np.float32)
    found = set()
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            found.add(reduce_vectors(vectors, 128).tobytes())
    assert len(found) == 1


def test_reducing_keeps_the_greatest_variance() -> None:
    generator = np.random.default_rng(0)
    # Two directions hold all the variance; the last word has no vector.
    axes = np.linalg.qr(generator.normal(size=(6, 6)))[0][:2]
    values = generator.normal(size=(40, 2)) * [5.0, 2.0]
    vectors = np.concatenate([values @ axes + 3.0, np.zeros((1, 6))])
    reduced = reduce_vectors(vectors, 2)
    assert reduced.shape == (41, 2) and not reduced[-1].any()
    centred = values - values.mean(0)
    distances = [np.linalg.norm(x[:-1, None] - x[None, 1:], axis=-1) for x in (reduced[:-1], centred)]
    assert np.allclose(*distances, atol=1e-6)
    spread = reduced[:-1].var(0)
    assert spread[0] > spread[1] > 0
    assert np.allclose(reduced[:-1].mean(0), 0, atol=1e-6)
    # One direction alone is the stronger of the two.
    assert np.allclose(reduce_vectors(vectors, 1)[:, 0], reduced[:, 0])
    # More dimensions than there are.
    with pytest.raises(PotstillError, match=r"vocabulary\.dimensions: 7.*have 6"):
        reduce_vectors(np.ones((3, 6)), 7)
    vectors = {"kind": "file", "path": "v.txt", "format": "glove"}
    settings = {"lowercase": True, "extra_words": 0, "dimensions": None}
    with pytest.raises(ValidationError, match="let `vectors` be of kind model, or set 0"):
        Vocabulary.model_validate({**settings, "pieces": 1, "vectors": vectors})


def test_vectors_of_words_without_any() -> None:
    vectors = np.random.default_rng(0).normal(size=(5, 400))
    vectors[[1, 3]] = 0
    words = ["a", "b", "c", "d", "e"]
    table = complete_vectors(words, vectors)
    assert table.shape == (7, 400) and table.dtype == np.float32
    assert not table[:2].any()
    norms = np.linalg.norm(table[2:], axis=1)
    assert np.sqrt((norms[[0, 2, 4]] ** 2).mean()) == pytest.approx(3.0)
    assert norms[[1, 3]] == pytest.approx(3.0, rel=0.15)
    # Known words keep their direction.
    assert np.allclose(table[2] / norms[0], vectors[0] / np.linalg.norm(vectors[0]), atol=1e-6)
    assert not np.allclose(table[3], table[5])
    # Random vectors are the words own.
    one = complete_vectors(["a", "b"], np.zeros((2, 16)))
    other = complete_vectors(["x", "b", "a"], np.zeros((3, 16)))
    assert np.array_equal(one[2], other[4]) and np.array_equal(one[3], other[3])
    assert not np.array_equal(one[2], one[3])
    many = random_vectors([f"w{i}" for i in range(500)], 16)
    assert abs(many.mean()) < 0.05
    assert np.sqrt((many**2).sum(1).mean()) == pytest.approx(3.0, rel=0.05)
    assert np.abs(many).max() <= 3 * np.sqrt(3 / 16)


@pytest.mark.parametrize(("lowercase", "words"), [(True, ["good", "nice"]), (False, ["good", "The", "Paris", "nice"])])
def test_extra_words_are_those_that_the_tokenizer_can_produce(
    tmp_path: Path, lowercase: bool, words: list[str]
) -> None:
    file = ["The", "Paris", "hello world", "don't", "Paris's", "nice"]
    (tmp_path / "vectors.txt").write_text("".join(f"{w} 1 2\n" for w in ["good", *file]))
    params = Vocabulary.model_validate({
        "lowercase": lowercase, "extra_words": 3, "dimensions": None,
        "vectors": {"kind": "file", "path": "vectors.txt", "format": "glove"},
    })  # fmt: skip
    tokenizer, _ = build_vocabulary(["good"], params, tmp_path)
    assert sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)[2:] == words
    assert [tokenizer.encode(word).ids for word in words] == [[2 + n] for n in range(len(words))]


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
    # A tokenizer of bytes knows everything.
    words = KnownWords(TOKENIZER, None, 4)
    assert not words.none_in(["zzz"]).any() and words.missing(["zzz"])[0].words == []
    # The tokenizer truncates as before.
    tokenizer = build_tokenizer(["a"], lowercase=True)
    tokenizer.enable_truncation(3)
    KnownWords(tokenizer, tokenizer.token_to_id(MASK), 3).missing(["b b b b b"])
    assert len(tokenizer.encode("a a a a a").ids) == 3
