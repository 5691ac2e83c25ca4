"""Word pieces of many texts are those of each text."""

from pathlib import Path

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.text import pieces
from tests.kit.pretrained import write_model


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
