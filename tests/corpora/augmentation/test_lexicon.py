"""The POS lexicon: counts by hand, bytes free of order, entries, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.augmentation.lexicon import SCHEMA, Lexicon, count_words, read_lexicon
from pipeline_lib.shards.shard_sets import write_shard

LISTS = pa.list_(pa.string())
WORDS = [["a", "film", "a"], ["film", "film"], [], ["run"]]
TAGS = [["DT", "NN", "DT"], ["NN", "VB"], [], ["VB"]]


def counted(words: list[list[str]], tags: list[list[str]]) -> pa.Table:
    return count_words(pa.array(words, LISTS), pa.array(tags, LISTS))


def test_counts_by_hand(tmp_path: Path, make_lexicon: Callable[..., Lexicon]) -> None:
    assert counted(WORDS, TAGS).to_pylist() == [
        {"tag": "DT", "word": "a", "count": 2},
        {"tag": "NN", "word": "film", "count": 2},
        {"tag": "VB", "word": "film", "count": 1},
        {"tag": "VB", "word": "run", "count": 1},
    ]
    assert counted(WORDS, TAGS).schema == SCHEMA
    write_shard(tmp_path / "a", counted(WORDS, TAGS))
    lexicon = read_lexicon(tmp_path / "a")
    assert lexicon.words == ["a", "film", "film", "run"]
    assert lexicon.tag_numbers == {"DT": 0, "NN": 1, "VB": 2}
    assert lexicon.starts.tolist() == [0, 1, 2, 4]
    assert lexicon.cumulative.tolist() == [0, 2, 4, 5, 6]
    lexicon = make_lexicon({"DT": {"a": 2}, "NN": {"film": 2}, "VB": {"film": 1, "run": 1}})
    asked = [("film", "VB"), ("film", "NN"), ("a", "DT"), ("a", "NN"), ("x", "VB"), ("a", "XX")]
    words, tags = (pa.array(column) for column in zip(*asked, strict=True))
    assert lexicon.entries(words, tags).tolist() == [2, 1, 0, -1, -1, -1]
    none = pa.array([], pa.string())
    assert lexicon.entries(none, none).tolist() == []


def test_bytes_do_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    write_shard(tmp_path / "a", counted(WORDS, TAGS))
    write_shard(tmp_path / "b", counted(WORDS[::-1], TAGS[::-1]))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    write_shard(tmp_path / "c", counted(WORDS[:2], TAGS[:2]))
    assert read_lexicon(tmp_path / "a").digest == read_lexicon(tmp_path / "b").digest
    assert read_lexicon(tmp_path / "c").digest != read_lexicon(tmp_path / "a").digest


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lexicon.arrow"
    for content in (None, b"ARROW1"):
        if content:
            path.write_bytes(content)
        with pytest.raises(PotstillError, match=r"lexicon\.arrow: .*distill run"):
            read_lexicon(path)
    path.unlink()
    write_shard(path, SCHEMA.empty_table())
    with pytest.raises(PotstillError, match="has no word"):
        read_lexicon(path)
