"""Batches: every row once per epoch, lengths kept together, order a function of (seed, epoch)."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.text import pieces
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.ragged import Sentences
from tests.kit.pretrained import write_model


def make(count: int = 53, seed: int = 0) -> Sentences:
    generator = np.random.default_rng(seed)
    ids = [list(range(2, 2 + n)) for n in generator.integers(1, 8, count)]
    return Sentences.from_lists(ids, {"labels": np.arange(count)}, 0)


@pytest.mark.parametrize("batch_size", [1, 4, 100])
@pytest.mark.parametrize("count", [1, 2, 53])
def test_every_row_once_per_epoch(batch_size: int, count: int) -> None:
    sentences = make(count)
    batches = LengthSorted(sentences, batch_size, 3)
    sizes = set()
    for number in range(3):
        epoch = batches.epoch(number)
        assert sorted(np.concatenate(epoch).tolist()) == list(range(count))
        assert all(1 <= len(rows) <= batch_size for rows in epoch)
        sizes.add(len(epoch))
    assert len(sizes) == 1


def test_order_is_a_function_of_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        return [rows.tolist() for rows in LengthSorted(make(), 4, seed).epoch(epoch)]

    assert order(1, 2) == order(1, 2)
    different = [order(1, 2), order(1, 3), order(2, 2)]
    assert all(a != b for i, a in enumerate(different) for b in different[:i])
    batches = LengthSorted(make(), 4, 1)
    batches.epoch(0)
    assert [rows.tolist() for rows in batches.epoch(2)] == order(1, 2)
    # Batches are shuffled not sorted.
    sentences = make()
    lengths = [sentences.lengths[rows[0]] for rows in LengthSorted(sentences, 4, 1).epoch(0)]
    assert lengths != sorted(lengths)
    # Batches are of like length.
    sentences = make(53)
    epoch = LengthSorted(sentences, 10, 3).epoch(0)
    ranges = sorted((sentences.lengths[r].min(), sentences.lengths[r].max()) for r in epoch)
    assert len(epoch) == 6
    assert all(high <= low for (_, high), (low, _) in pairwise(ranges))


def test_padding_by_hand() -> None:
    targets = {"labels": np.array([5, 6, 7]), "logits": np.eye(3, 2, dtype=np.float32)}
    sentences = Sentences.from_lists([[1, 2, 3], [4], [5, 6]], targets, pad_id=9)
    batch = LengthSorted(sentences, 2, 0).collate(np.array([2, 0, 1]))
    assert batch["ids"].tolist() == [[5, 6, 9], [1, 2, 3], [4, 9, 9]]
    assert batch["ids"].dtype == torch.int64
    assert batch["lengths"].tolist() == [2, 3, 1]
    assert batch["labels"].tolist() == [7, 5, 6]
    assert batch["logits"].tolist() == [[0, 0], [1, 0], [0, 1]]
    assert sentences.batch(np.array([1]))["ids"].tolist() == [[4]]
    sentences = Sentences.from_lists([[1, 2], [3]], {}, 0)
    assert len(sentences) == 2
    assert sentences.ids.tolist() == [1, 2, 3] and sentences.ids.dtype == np.int32
    assert sentences.offsets.tolist() == [0, 2, 3]
    assert sentences.lengths.tolist() == [2, 1]
    nothing = Sentences.from_lists([], {}, 0)
    assert len(nothing) == 0
    assert LengthSorted(nothing, 4, 0).epoch(0) == []


@pytest.mark.parametrize("pair", [False, True])
def test_texts_are_encoded_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pair: bool) -> None:
    own = pieces.load_pieces(write_model(tmp_path / "bert", "bert"), "sequence")
    texts = ["a film", "", "a good film about films", "dull", "good good"]
    given = [(text, "so dull") for text in texts] if pair else texts
    whole = own.number(given, 6)
    monkeypatch.setattr(pieces, "ENCODED_TEXTS", 2)
    parts = own.number(given, 6)
    assert whole.ids.dtype == parts.ids.dtype == np.int32
    assert np.array_equal(parts.ids, whole.ids) and np.array_equal(parts.offsets, whole.offsets)
    assert whole.lengths.max() == 6
    assert (whole.segments is None) == (not pair)
    if pair:
        assert np.array_equal(parts.segments, whole.segments) and whole.segments.any()


@pytest.mark.parametrize("content", ["[]", "{}", "{"])
def test_damaged_settings_of_a_tokenizer_are_an_error_that_names_them(tmp_path: Path, content: str) -> None:
    read = pieces.load_pieces(write_model(tmp_path / "bert", "bert"), "sequence")
    read.save(tmp_path)
    assert pieces.Pieces.read(tmp_path).segments
    (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises((PotstillError, ValueError), match=r"tokenizer_config.json"):
        pieces.Pieces.read(tmp_path)


def test_pieces_of_a_students_folder_are_what_was_saved(tmp_path: Path) -> None:
    read = pieces.load_pieces(write_model(tmp_path / "bert", "bert"), "sequence")
    read.save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "a student", "architecture": {}}')
    again = pieces.load_pieces(tmp_path, "sequence")
    assert again.segments and again.padding == read.padding and again.mask == read.mask
    assert np.array_equal(again.number(["a film"], 9).ids, read.number(["a film"], 9).ids)
