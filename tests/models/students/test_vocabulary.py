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
from pipeline_lib.models.students.tokenise import save_tokenizer
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
from pipeline_lib.text.words import split_words


def test_words_by_count_then_by_name() -> None:
    counted = Counter({"b": 2, "a": 2, "c": 5, "rare": 1})
    assert select_words(counted, 1) == ["c", "a", "b", "rare"]
    assert select_words(counted, 2) == ["c", "a", "b"]
    assert select_words(counted, 9) == []


def test_counting_as_the_tokenizer_sees_words() -> None:
    single = pa.table({"text": ["", ""], "words": [["Film", "film"], ["FILM"]]})
    pairs = pa.table({"text": [""], "words": [["film"]], "text_2": [""], "words_2": [["Ünï"]]})
    words = count_words([single, pairs.slice(0, 1), pairs.slice(1)])
    assert words == {"Film": 1, "film": 2, "FILM": 1, "Ünï": 1}
    assert count_normalised(words, True) == {"film": 4, "ünï": 1}
    assert count_normalised(["Film", "film"], True) == {"film": 2}
    assert count_normalised(words, False) == words


def test_unknown_and_masked_words_are_one(tmp_path: Path) -> None:
    tokenizer = build_tokenizer(["a", "film"], True)
    assert (tokenizer.token_to_id("[PAD]"), tokenizer.token_to_id(MASK)) == (0, 1)
    assert tokenizer.encode("A [MASK] unheard Film").ids == [2, 1, 1, 3]
    assert tokenizer.get_vocab_size() == 4
    save_tokenizer(tmp_path, tokenizer)
    padded = AutoTokenizer.from_pretrained(tmp_path)(["a [MASK]", "A unheard film"], padding=True)
    assert padded["input_ids"] == [[2, 1, 0], [2, 1, 3]]
    assert padded["attention_mask"] == [[1, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize("pieces", [[], ["c", "w", "##a", "##e", "##lm", "##ed", "##."]])
@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_of_words_are_the_tokenizers(
    texts: list[str], text_words: list[str], lowercase: bool, pieces: list[str]
) -> None:
    known = sorted({w.lower() if lowercase else w for w in text_words[::2]})
    tokenizer = build_tokenizer([*known, *set(pieces).difference(known)], lowercase)
    seen, longest = set(), 0
    for text in texts:
        found, lengths = WordNumbers(tokenizer).of_words(split_words(text)[0])
        assert found.tolist() == tokenizer.encode(text).ids, text
        assert lengths.sum() == len(found)
        seen |= set(found.tolist())
        longest = max(longest, lengths.max(initial=0))
    assert 1 in seen and len(seen) > 10
    assert (longest > 1) == bool(pieces)


def test_unknown_words_are_read_by_their_pieces() -> None:
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


def test_pieces_need_a_model() -> None:
    vectors = {"kind": "file", "path": "v.txt", "format": "glove"}
    settings = {"lowercase": True, "extra_words": 0, "dimensions": None}
    with pytest.raises(ValidationError, match="let `vectors` be of kind model, or set 0"):
        Vocabulary.model_validate({**settings, "pieces": 1, "vectors": vectors})


def test_save_and_load(tmp_path: Path) -> None:
    vectors = np.arange(8, dtype=np.float32).reshape(4, 2)
    save_vocabulary(tmp_path / "v", build_tokenizer(["a", "film"], True), vectors)
    tokenizer, table = load_vocabulary(tmp_path / "v")
    assert np.array_equal(table, vectors) and table.dtype == np.float32
    assert tokenizer.encode("A [MASK] film!").ids == [2, 1, 3, 1]
    assert WordNumbers(tokenizer).of_words(["Film", MASK, "x"])[0].tolist() == [3, 1, 1]


def test_reducing_gives_the_same_bytes_on_any_number_of_cores() -> None:
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


def test_more_dimensions_than_there_are() -> None:
    with pytest.raises(PotstillError, match=r"vocabulary\.dimensions: 7.*have 6"):
        reduce_vectors(np.ones((3, 6)), 7)


def test_words_without_a_vector_get_one_of_their_own() -> None:
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


def test_random_vectors_are_the_words_own() -> None:
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
