"""Searching: exactly, by the student's comparison, by candidates, by a teacher."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.student import load_student
from pipeline_lib.retrieval import index as indexes
from pipeline_lib.retrieval.approximate import write_approximate
from pipeline_lib.retrieval.index import Index
from pipeline_lib.retrieval.search import Hit, Search, cross_encoder, pair_scorer
from tests.pipeline.workspace import flip_byte

from .made_up import TEXTS, by_cosine, cosine_order, made, stand_in, write_student

QUERIES = ["word3 word4", "word10", "unknown words"]


def rows_of(hits: list[list[Hit]]) -> list[list[int]]:
    return [[hit.row for hit in own] for own in hits]


def test_an_exact_search_is_that_of_numpy(tmp_path: Path, encoder: Path) -> None:
    index = made(tmp_path / "index", encoder, storage="float32")
    own = load_encoder(encoder)
    scores, order = cosine_order(own.encode(QUERIES), own.encode(TEXTS))
    found = by_cosine(index).find(QUERIES, 7)
    assert rows_of(found) == order[:, :7].tolist()
    wanted = np.take_along_axis(scores, order[:, :7], 1)
    np.testing.assert_allclose([[hit.score for hit in own] for own in found], wanted, atol=1e-5)
    assert [len(own) for own in by_cosine(index).find(QUERIES, 70)] == [50] * 3


def test_the_student_of_an_index_compares(tmp_path: Path) -> None:
    folder = write_student(tmp_path / "student", ["apart", "alike"])
    index = made(tmp_path / "index", folder)
    way = replace(by_cosine(index), scorer=pair_scorer(index, None, None))
    found = way.find(QUERIES, 50)
    student = load_student(folder)
    for query, hits in zip(QUERIES, found, strict=True):
        logits = student.logits([(query, TEXTS[hit.row]) for hit in hits])
        np.testing.assert_allclose([hit.score for hit in hits], logits[:, 1] - logits[:, 0], atol=0.01)
        assert sorted(hit.row for hit in hits) == list(range(50))
    of_the_other = pair_scorer(index, None, "apart")
    assert rows_of(Search(index, way.encoder, of_the_other).find(QUERIES, 3)) != rows_of(way.find(QUERIES, 3))
    with pytest.raises(PotstillError, match="no class 'no'; there are apart, alike"):
        pair_scorer(index, None, "no")


def by_first_word(query: str, texts: list[str]) -> np.ndarray:
    """Stands for a teacher: prefers sentences whose first word has the greater number."""
    return np.array([float(text.split()[0][4:]) for text in texts], np.float32)


def test_a_teacher_orders_the_best_once_more(tmp_path: Path, encoder: Path) -> None:
    plain = by_cosine(made(tmp_path / "index", encoder))
    way = replace(plain, cross_encoder=by_first_word, rescored=8)
    for first, hits in zip(plain.find(QUERIES, 8), way.find(QUERIES, 3), strict=True):
        numbers = sorted(by_first_word("", [TEXTS[hit.row] for hit in first]).tolist(), reverse=True)
        assert [hit.score for hit in hits] == numbers[:3]
    with pytest.raises(PotstillError, match="rescore: 8, but 9 answers are asked for"):
        way.find(QUERIES, 9)


@pytest.mark.parametrize("label", [None, "no", "score"])
def test_a_teacher_scores_by_the_probability_of_a_class_or_its_score(
    label: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, kind = (("score",), "regression") if label == "score" else (("no", "yes"), "classification")
    outputs = np.array([[0.0], [0.5], [10.0]], np.float32)
    logits = outputs if label == "score" else np.hstack([0 * outputs, outputs])
    opened = SimpleNamespace(label_names=names, kind=kind), lambda _: logits
    monkeypatch.setattr("pipeline_lib.retrieval.search.open_teacher", lambda *_: opened)
    found = cross_encoder(Path("teacher"), label)("", ["a", "b", "c"])
    sign = 1 if label == "no" else -1
    wanted = outputs if label == "score" else 1 / (1 + np.exp(sign * outputs.astype(float)))
    np.testing.assert_allclose(found, wanted[:, 0])


def everything(queries: np.ndarray, count: int) -> list[np.ndarray]:
    """Stands for an approximate index that finds the last rows."""
    return [np.arange(49, 49 - count, -1)] * len(queries)


def test_candidates_are_scored_again(tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = made(tmp_path / "index", encoder)
    own = load_encoder(encoder)
    _, order = cosine_order(own.encode(QUERIES), index.vectors[np.arange(40, 50)])
    plain = by_cosine(index)
    way = Search(index, plain.encoder, plain.scorer, candidates=10)
    with pytest.raises(PotstillError, match=r"has no approximate index\. Build it with"):
        way.find(QUERIES, 3)
    monkeypatch.setattr(Search, "_approximate", staticmethod(everything))
    assert rows_of(way.find(QUERIES, 3)) == (40 + order[:, :3]).tolist()
    with pytest.raises(PotstillError, match="first: 10 candidates, fewer than the 11"):
        way.find(QUERIES, 11)


def test_the_approximate_index_is_of_the_shards_that_are_there(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)

    def check(texts: list[str]) -> Index:
        index = made(Path("index"), encoder, texts, approximate=True)
        way = replace(by_cosine(index), candidates=20)
        assert rows_of(way.find(QUERIES, 5)) == rows_of(by_cosine(index).find(QUERIES, 5))
        assert index.faults() == [] and len(list(Path("index").glob("approx*"))) == 1
        return index

    first = check(TEXTS[:30])
    with monkeypatch.context() as patched:
        patched.setattr(indexes, "write_approximate", None)
        assert check(TEXTS[:30]).approximate == first.approximate
    # One of other rows or a damaged one is made anew.
    flip_byte(first.approximate_file)
    assert [fault.split(": ")[1][:16] for fault in first.faults()] == ["missing, altered"]
    for texts in (TEXTS[:30], TEXTS, TEXTS[::-1]):
        index = check(texts)
    assert made(Path("index"), encoder).approximate is None and not list(Path("index").glob("approx*"))
    stale = replace(index, approximate=first.approximate)
    with pytest.raises(PotstillError, match="missing, truncated or of other rows"):
        replace(by_cosine(stale), candidates=20).find(QUERIES, 5)


def test_an_approximate_index_finds_nearly_all(encoder: Path) -> None:
    pytest.importorskip("usearch", reason="usearch is an extra")
    index = made(Path("index"), encoder, approximate=True)
    assert share_found(index) >= 0.95
    path = index.approximate_file
    whole = path.read_bytes()
    for damaged in (None, whole[:-8], whole[:50], b"x" * len(whole)):
        path.write_bytes(damaged) if damaged else path.unlink()
        with pytest.raises(PotstillError, match=r"missing, truncated|not an index of usearch"):
            share_found(index)
        assert made(Path("index"), encoder, approximate=True).faults() == []


def test_the_same_vectors_give_the_same_approximate_index(tmp_path: Path) -> None:
    pytest.importorskip("usearch", reason="usearch is an extra")
    vectors = np.random.default_rng(1).standard_normal((2000, 16)).astype(np.float32)
    for name in "ab":
        write_approximate(tmp_path / name, [(0, vectors[:900]), (900, vectors[900:])], 16)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def share_found(index: Index) -> float:
    """Return which share of the five nearest rows is found approximately."""
    plain = by_cosine(index)
    way = Search(index, plain.encoder, plain.scorer, candidates=20)
    wanted, found = rows_of(plain.find(TEXTS, 5)), rows_of(way.find(TEXTS, 5))
    shared = [len({*a} & {*b}) for a, b in zip(wanted, found, strict=True)]
    return sum(shared) / (5 * len(TEXTS))


def test_a_library_that_is_not_installed_is_named(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(PotstillError, match=r"pip install 'potstill\[usearch\]'"):
        made(tmp_path / "index", encoder, approximate=True)
    assert not (tmp_path / "index").exists()
