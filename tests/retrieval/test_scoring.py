"""Scores of all pairs against the student's own, whatever the architecture, sizes and blocks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.networks.student import StudentConfig
from pipeline_lib.params import student_settings
from pipeline_lib.retrieval import scoring
from pipeline_lib.retrieval.scoring import CosineScorer, PairScorer, score_blocks, scores
from pipeline_lib.students.sentence_encoder import encode_sentences
from pipeline_lib.students.student import Student, build_student
from pipeline_lib.students.vocabulary import build_tokenizer

WORDS = ["a", "film", "good", "dull", "plot"]
COMMON = {"dropout": 0.1, "max_words": 6}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "bilstm": {"hidden": 5, "classifier": 7, "embeddings": "trained"},
    "bilstm_sra": {"hidden": 4, "width": 9, "classifier": 11, "embeddings": "static"},
    "cnn": {"widths": [1, 2], "filters": 3, "classifier": 8, "embeddings": "multichannel"},
    "static": {"classifier": 6, "embeddings": "trained"},
    "linear": {"ngrams": 2, "buckets": 50, "dimensions": 4},  # no ReLU layer
}
LABELS = {1: ["score"], 2: ["no", "yes"], 3: ["no", "maybe", "yes"]}
FIRST = ["a good film", "film", "a dull plot a", "plot plot"]
SECOND = ["good", "a film", "a dull plot a", "good good film", "dull", "a a a", "plot film"]


def make_student(architecture: str, outputs: int, pair: bool = True) -> Student:
    torch.manual_seed(outputs)
    settings = student_settings(
        ARCHITECTURES[architecture] | COMMON | {"architecture": architecture}
    )
    config = StudentConfig(len(WORDS) + 2, 6, settings, pair, LABELS[outputs])
    model = build_student(config, None)
    return Student(model.eval(), build_tokenizer(WORDS, True), torch.device("cpu"))


def vectors(student: Student, texts: list[str]) -> np.ndarray:
    sentences = replace(student.encode([(text, text) for text in texts]), second=None)
    return encode_sentences(student.model.encoder, sentences, student.device)


def expected(student: Student, output: int) -> np.ndarray:
    """Return the student's own answers for all pairs, as scores."""
    logits = student.predict([(one, other) for one in FIRST for other in SECOND])
    if logits.shape[1] == 1:
        found = logits[:, 0]
    elif logits.shape[1] == 2:
        found = logits[:, output] - logits[:, 1 - output]
    else:
        found = torch.from_numpy(logits).log_softmax(1)[:, output].numpy()
    return found.reshape(len(FIRST), len(SECOND))


@pytest.mark.parametrize("outputs", LABELS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_pairs_get_the_students_own_score(architecture: str, outputs: int) -> None:
    student = make_student(architecture, outputs)
    first, second = vectors(student, FIRST), vectors(student, SECOND)
    for output in range(outputs):
        scorer = PairScorer.of(student, output, precision="float32")
        found = scores(scorer, first, second)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected(student, output), atol=2e-6)


def test_the_class_that_counts_is_named_where_there_are_several() -> None:
    default = PairScorer.of(make_student("static", 2), precision="float32")
    student = make_student("static", 2)
    first, second = vectors(student, FIRST), vectors(student, SECOND)
    np.testing.assert_allclose(scores(default, first, second), expected(student, 1), atol=2e-6)
    with pytest.raises(DistilleryError, match=r"0 \(no\), 1 \(maybe\), 2 \(yes\)"):
        PairScorer.of(make_student("static", 3))
    with pytest.raises(DistilleryError, match="there is no 2"):
        PairScorer.of(student, 2)


def test_students_without_a_vector_for_each_sentence_are_refused() -> None:
    with pytest.raises(DistilleryError, match="a cnn student that reads single sentences"):
        PairScorer.of(make_student("cnn", 2, pair=False))
    settings = {
        "architecture": "biattentive", "tokens": "words", "model": None, "embedding_size": None,
        "feedforward": 4, "hidden": 3, "pools": ["max"], "shared": 4, "classifier": 4,
    }  # fmt: skip
    config = StudentConfig(7, 6, student_settings(settings | COMMON), True, LABELS[2])
    joint = Student(build_student(config, None), build_tokenizer(WORDS, True), torch.device("cpu"))
    with pytest.raises(DistilleryError, match="biattentive student that reads both sentences"):
        PairScorer.of(joint)


def test_blocks_cover_the_whole_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(1)
    first, second = (draw.normal(size=(n, 3)).astype(np.float32) for n in (5, 7))
    whole = scores(CosineScorer(), first, second)
    monkeypatch.setattr(scoring, "QUERY_ROWS", 2)
    monkeypatch.setattr(scoring, "CANDIDATE_ROWS", 3)
    corners = [(top, left) for top, left, _ in score_blocks(CosineScorer(), first, second)]
    assert corners == [(top, left) for top in (0, 2, 4) for left in (0, 3, 6)]
    np.testing.assert_allclose(scores(CosineScorer(), first, second), whole, atol=1e-6)
    lengths = [np.linalg.norm(side, axis=1, keepdims=True) for side in (first, second)]
    np.testing.assert_allclose(whole, (first / lengths[0]) @ (second / lengths[1]).T, atol=1e-6)


def test_the_cosine_of_zeros_is_zero() -> None:
    zeros, ones = np.zeros((1, 3), np.float32), np.ones((2, 3), np.float32)
    assert scores(CosineScorer(), zeros, ones).tolist() == [[0.0, 0.0]]
    assert scores(CosineScorer(), ones, zeros).tolist() == [[0.0], [0.0]]
