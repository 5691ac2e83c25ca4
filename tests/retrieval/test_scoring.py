"""Scores of all pairs against the student's own, whatever the architecture, sizes and blocks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pytest import MonkeyPatch
from torch.overrides import TorchFunctionMode

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.networks.student import StudentConfig
from pipeline_lib.models.students.sentence_encoder import encode_sentences
from pipeline_lib.models.students.student import Student, build_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import student_settings
from pipeline_lib.retrieval import scoring
from pipeline_lib.retrieval.scoring import CosineScorer, PairScorer, Scorer

WORDS = ["a", "film", "good", "dull", "plot"]
COMMON = {"dropout": 0.1, "max_words": 6}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "bilstm": {"hidden": 5, "classifier": 7, "embeddings": "trained"},
    "bilstm_sra": {"hidden": 4, "width": 9, "classifier": 11, "embeddings": "static"},
    "cnn": {"widths": [1, 2], "filters": 3, "classifier": 8, "embeddings": "multichannel"},
    "static": {"classifier": 6, "embeddings": "trained"},
    "regression": {"ngrams": 2, "buckets": 50, "dropout": 0.0},  # no ReLU layer
}
LABELS = {1: ["score"], 2: ["no", "yes"], 3: ["no", "maybe", "yes"]}
FIRST = ["a good film", "film", "a dull plot a", "plot plot"]
SECOND = ["good", "a film", "a dull plot a", "good good film", "dull", "a a a", "plot film"]


def scores(scorer: Scorer, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return scorer.block(scorer.prepare(first), second).numpy()


def make_student(architecture: str, outputs: int, pair: bool = True) -> Student:
    torch.manual_seed(outputs)
    settings = student_settings(COMMON | ARCHITECTURES[architecture] | {"architecture": architecture})
    config = StudentConfig(len(WORDS) + 2, 6, settings, pair, LABELS[outputs])
    model = build_student(config, None)
    return Student(model.eval(), build_tokenizer(WORDS, True), torch.device("cpu"))


def vectors(student: Student, texts: list[str]) -> np.ndarray:
    sentences = replace(student.encode([(text, text) for text in texts]), second=None)
    return encode_sentences(student.model.encoder, sentences, student.device)


def expected(student: Student, output: int) -> np.ndarray:
    logits = student.logits([(one, other) for one in FIRST for other in SECOND])
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


Layers = list[tuple[torch.Tensor, torch.Tensor]]


def random_layers(width: int, units: int, precision: str) -> tuple[PairScorer, Layers]:
    draw = torch.Generator().manual_seed(1)
    layers = [
        tuple(torch.randn(shape, generator=draw) / width**0.5 for shape in (sizes, sizes[:1]))
        for sizes in ((units, 4 * width), (1, units))
    ]
    return PairScorer(*layers, None, torch.device("cpu"), precision), layers


def random_vectors(rows: int, width: int, seed: int) -> np.ndarray:
    return np.tanh(np.random.default_rng(seed).normal(size=(rows, width))).astype(np.float32)


def by_definition(layers: Layers, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return W' ReLU(W [u, v, u * v, |u - v|] + b) + b' of all pairs, in float64."""
    (weight, bias), (last, last_bias) = ([p.double().numpy() for p in pair] for pair in layers)
    u, v = np.broadcast_arrays(first[:, None].astype(float), second[None].astype(float))
    features = np.concatenate([u, v, u * v, np.abs(u - v)], axis=2)
    return (np.maximum(features @ weight.T + bias, 0) @ last.T + last_bias)[..., 0]


SHAPES = [(1, 1, 1, 1), (3, 50, 2, 7), (5, 33, 16, 1), (1, 700, 40, 24), (20, 300, 9, 12)]


@pytest.mark.parametrize(("queries", "candidates", "width", "units"), SHAPES)
@pytest.mark.parametrize("tile", [1, 16, 1000])
def test_scores_are_those_of_the_definition(
    queries: int, candidates: int, width: int, units: int, tile: int, monkeypatch: MonkeyPatch
) -> None:
    # Tiles smaller and greater than the candidates, and room for some of the queries' layers only.
    monkeypatch.setattr(scoring, "_tile_rows", lambda *_: tile)
    monkeypatch.setattr(scoring, "LAYERS_BYTES", 3 * 2 * width * units * 4)
    scorer, layers = random_layers(width, units, "float32")
    first, second = random_vectors(queries, width, 2), random_vectors(candidates, width, 3)
    found = scores(scorer, first, second)
    np.testing.assert_allclose(found, by_definition(layers, first, second), atol=2e-5)


@pytest.mark.parametrize(("width", "units"), [(16, 24), (200, 200), (384, 100)])
def test_bfloat16_deviates_by_a_fortieth_of_the_spread(width: int, units: int) -> None:
    scorer, layers = random_layers(width, units, "bfloat16")
    first, second = random_vectors(4, width, 2), random_vectors(300, width, 3)
    exact = by_definition(layers, first, second)
    deviation = np.abs(scores(scorer, first, second) - exact) / exact.std()
    assert 0 < deviation.max() < 0.025
    assert deviation.mean() < 0.006


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_scores_do_not_depend_on_where_blocks_end(precision: str) -> None:
    scorer, _ = random_layers(40, 24, precision)
    half = random_vectors(75, 40, 3)
    prepared, candidates = scorer.prepare(random_vectors(2, 40, 2)), np.concatenate([half, half])
    whole = scorer.block(prepared, candidates)
    # Equal vectors have equal scores, to the last bit, so that the lower row comes first.
    assert torch.equal(whole[:, :75], whole[:, 75:])
    for rows in (1, 37, 100):
        starts = range(0, len(candidates), rows)
        parts = [scorer.block(prepared, candidates[start : start + rows]) for start in starts]
        assert torch.equal(torch.cat(parts, dim=1), whole)


def test_memory_grows_with_neither_side(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "_tile_rows", lambda *_: 16)
    scorer, _ = random_layers(10, 5, "bfloat16")
    greatest = []
    for times in (1, 5):
        first, second = random_vectors(8 * times, 10, 2), random_vectors(64 * times, 10, 3)
        with LargestTensor() as largest:
            prepared = scorer.prepare(first[:8])
            parts = [scorer.block(prepared, second[start : start + 64]).shape for start in range(0, 64 * times, 64)]
        assert parts == [(8, 64)] * times
        greatest.append(largest.values)
    # The layers of 8 queries, and no features of all pairs of a block, which would be 20,480.
    assert greatest == [8 * 2 * 10 * 5] * 2


def test_mapped_vectors_are_read_where_they_lie(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    (scorer, _), second = random_layers(6, 5, "float32"), random_vectors(40, 6, 3)
    np.save(tmp_path / "vectors.npy", second)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    first = random_vectors(2, 6, 2)
    np.testing.assert_array_equal(scores(scorer, first, mapped), scores(scorer, first, second))
    assert not recwarn.list


class LargestTensor(TorchFunctionMode):
    """Counts the values of the largest tensor that any function of torch gives."""

    values = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        for tensor in found if isinstance(found, list | tuple) else [found]:
            if isinstance(tensor, torch.Tensor):
                self.values = max(self.values, tensor.numel())
        return found


def test_the_class_that_counts_is_named_where_there_are_several() -> None:
    default = PairScorer.of(make_student("static", 2), precision="float32")
    student = make_student("static", 2)
    first, second = vectors(student, FIRST), vectors(student, SECOND)
    np.testing.assert_allclose(scores(default, first, second), expected(student, 1), atol=2e-6)
    with pytest.raises(PotstillError, match="which of no, maybe, yes is the score"):
        PairScorer.of(make_student("static", 3))


def test_students_without_a_vector_for_each_sentence_are_refused() -> None:
    with pytest.raises(PotstillError, match="a cnn student that reads single sentences"):
        PairScorer.of(make_student("cnn", 2, pair=False))
    settings = {
        "architecture": "biattentive", "tokens": "words", "model": None, "embedding_size": None,
        "feedforward": 4, "hidden": 3, "pools": ["max"], "shared": 4, "classifier": 4,
    }  # fmt: skip
    config = StudentConfig(7, 6, student_settings(settings | COMMON), True, LABELS[2])
    joint = Student(build_student(config, None), build_tokenizer(WORDS, True), torch.device("cpu"))
    with pytest.raises(PotstillError, match="biattentive student that reads both sentences"):
        PairScorer.of(joint)


def test_the_cosine_of_zeros_is_zero() -> None:
    zeros, ones = np.zeros((1, 3), np.float32), np.ones((2, 3), np.float32)
    assert scores(CosineScorer(), zeros, ones).tolist() == [[0.0, 0.0]]
    assert scores(CosineScorer(), ones, zeros).tolist() == [[0.0], [0.0]]


def test_a_student_of_several_labels_ranks_nothing() -> None:
    student = make_student("cnn", 2)
    student.model.config = replace(student.model.config, kind="multilabel")
    with pytest.raises(PotstillError, match="a student of several labels does not rank"):
        PairScorer.of(student, 1)
