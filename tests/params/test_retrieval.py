"""Rows of `retrieval` and `similarity`: what they name has to be there."""

from typing import Any

import pytest

from tests.params.variants import LAYERS, RETRIEVAL, SIMILARITY, changed, error_of


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("source.task", "films", "source.task: no task 'films'; there are movies, tweets, neighbours"),
        ("source.task", "movies", "source.task: movies is not a task of sentence pairs"),
        ("source.relevant", "so", "source.relevant: no 'so'; there are apart, neighbours"),
        ("source.relevant", 1.0, "source.relevant: for neighbours, give the label of an answer (found"),
        ("source.relevant", None, "source.relevant: Input should be a valid"),
        ("source.graded", True, "source.graded: classes are not grades; set false for neighbours"),
        ("source.kind", "files", "source.kind: Input should be 'task'"),
        ("systems.f.method", "bilstm_kd", "systems.f.method: no 'bilstm_kd'; there are bilstm, "),
        ("systems.f.label", None, "systems.f.label: neighbours ranks by which class? Name one"),
        ("systems.cosine.label", "apart", "systems.cosine.label: goes with `score: f`"),
        ("systems.sra.encoder", "sro", "systems.sra.encoder: no 'sro'; there are sra"),
        ("systems.mini.model", "mine", "systems.mini.model: no 'mine'; there are minilm"),
        ("systems.read.first", "read", "systems.read.first: no 'read'; there are f, cosine, sra"),
        ("systems", {}, "systems: "),
        ("teacher", None, "systems.read.kind: reranked by the row's teacher, which is null"),
        ("teacher.teacher", "other", "teacher.teacher: no 'other'; there are minilm"),
        ("teacher.label", "no", "teacher.label: neighbours ranks by which class? Name one of"),
        ("at", [1, 1], "at: each may appear only once"),
        ("at", [], "at: "),
    ],
)
def test_faulty_rows_of_retrieval_name_their_key(path: str, value: Any, message: str) -> None:
    raw = changed({"retrieval": {"mine": RETRIEVAL}, f"retrieval.mine.{path}": value})
    assert f"retrieval.mine.{message}" in error_of(raw)


def test_retrieval_by_students_of_pairs_read_at_once_is_refused() -> None:
    own = {"students.new": LAYERS, "methods.bilstm.student": "new", "methods.bilstm.start": "model"}
    error = error_of(changed(own | {"retrieval": {"mine": RETRIEVAL}}))
    assert "retrieval.mine.systems.f.method: its student new reads both sentences at once" in error


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("task", "tweets", "task: tweets is not a task of sentence pairs"),
        ("encoders", ["sra", "no"], "encoders: no 'no'; there are sra"),
        ("model", "mine", "model: no 'mine'; there are minilm"),
        ("poolings", ["max"], "poolings.0: "),
    ],
)
def test_faulty_rows_of_similarity_name_their_key(key: str, value: Any, message: str) -> None:
    raw = changed({"similarity": {"mine": SIMILARITY | {key: value}}})
    assert f"similarity.mine.{message}" in error_of(raw)
