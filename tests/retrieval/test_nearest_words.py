"""The words with the nearest vectors: what all cosines say, sorted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.models.students.word_vectors import model_vectors
from pipeline_lib.params import Vocabulary
from pipeline_lib.retrieval.nearest_words import NearestWordsPass, nearest
from tests.kit.pretrained import write_model


def vocabulary(vectors: dict[str, Any], lowercase: bool = True) -> Vocabulary:
    values = {"min_count": 1, "extra_words": 0, "dimensions": None, "vectors": vectors}
    return Vocabulary.model_validate(values | {"lowercase": lowercase})


def by_cosine(query: np.ndarray, vectors: np.ndarray) -> list[int]:
    """Return all rows, the highest cosine first."""
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    return np.argsort(-(vectors @ query) / lengths, kind="stable").tolist()


@pytest.mark.parametrize("queries", [0, 1, 255, 600])
def test_the_nearest_are_those_of_all_cosines(queries: int, monkeypatch: Any) -> None:
    monkeypatch.setattr("pipeline_lib.retrieval.nearest_words.CANDIDATE_ROWS", 13)
    generator = np.random.default_rng(queries)
    vectors, asked = (generator.normal(size=(n, 5)).astype(np.float32) for n in (70, queries))
    ranked = nearest(asked, vectors, 4)
    assert ranked.shape == (queries, 4)
    assert ranked.tolist() == [by_cosine(query, vectors)[:4] for query in asked]


def test_a_models_whole_words(tmp_path: Path, make_examples: Callable[..., pa.Table]) -> None:
    # Single letters and pieces that continue a word are nobody's nearest.
    pool = ["film", "good", "dull", "plot", "is", "not", "the"]
    folder = write_model(tmp_path, "bert")
    nearest_words = NearestWordsPass.of(vocabulary({"kind": "model", "model": "m"}), folder, 3)
    words = ["The", "plots", "Film", "film", ".", "n't", "a", "lamp"]
    examples = make_examples([words[:4], words[4:]], [["X"] * 4] * 2)
    rows = {row["word"]: row["nearest"] for row in nearest_words.compute(examples).to_pylist()}
    # No word, or none whose pieces the model has.
    assert {*rows} == {"The", "plots", "Film", "film", "a"}
    vectors = model_vectors(folder, pool)
    for word, listed in rows.items():
        [query] = model_vectors(folder, [word])
        ranked = [pool[row] for row in by_cosine(query, vectors) if pool[row] != word.lower()]
        assert listed == ranked[:3]


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_files_words(
    lowercase: bool, tmp_path: Path, make_examples: Callable[..., pa.Table], monkeypatch: Any
) -> None:
    monkeypatch.setattr("pipeline_lib.retrieval.nearest_words.FILE_WORDS", 4)
    vectors = {"film": [1, 0], "Film": [0, 1], ",": [1, 1], "movie": [4, 1], "New": [3, 2]}
    vectors |= {"dull": [-1, 0], "flat": [-1, 1], "rare": [1, 0]}
    lines = [" ".join([word, *map(str, numbers)]) for word, numbers in vectors.items()]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n")
    file = {"kind": "file", "path": "v.txt", "format": "glove"}
    nearest_words = NearestWordsPass.of(vocabulary(file, lowercase), tmp_path, 2)
    words = ["Film", "dull", "rare", "absent"]
    table = nearest_words.compute(make_examples([words], [["X"] * 4])).to_pylist()
    assert {row["word"]: row["nearest"] for row in table} == (
        # Of the first four usable words: film, movie, dull, flat; or film, Film, movie, New.
        {"Film": ["movie", "flat"], "dull": ["flat", "movie"]} if lowercase else {"Film": ["New", "movie"]}
    )


def test_the_key_has_what_decides(tmp_path: Path) -> None:
    def key(count: int, **settings: Any) -> str:
        file = {"kind": "file", "path": "v.txt", "format": "glove"}
        return NearestWordsPass.of(vocabulary(file, **settings), tmp_path, count).key("block")

    (tmp_path / "vectors.txt").write_text("film 1 0\n")
    keys = {key(2), key(3), key(2, lowercase=False)}
    (tmp_path / "vectors.txt").write_text("film 1 1\n")
    assert len(keys | {key(2)}) == 4
