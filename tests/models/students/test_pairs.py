"""Siamese students: one encoder for both sentences, compared; and the score of a regression."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from pipeline_lib.models.networks.encoders import CNNEncoder, RegressionEncoder, StaticEncoder, reverse
from pipeline_lib.models.networks.student import StudentConfig, compare
from pipeline_lib.models.students.student import Student, build_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import StudentSettings, student_settings

WORDS = ["a", "film", "good", "dull", "plot"]
VALUES = {"architecture": "bilstm", "hidden": 5, "classifier": 7, "embeddings": "trained"}
SETTINGS = student_settings(VALUES | {"dropout": 0.0, "max_words": 4})
PAIRS = [("a good film", "a dull plot"), ("film", "a good plot a a a"), ("good", "good")]


def make_student(labels: list[str], pair: bool = True) -> Student:
    torch.manual_seed(3)
    model = build_student(StudentConfig(len(WORDS) + 2, 6, SETTINGS, pair, labels), None)
    return Student(model.eval(), build_tokenizer(WORDS, True), torch.device("cpu"))


def test_both_sentences_go_through_one_encoder_and_are_compared() -> None:
    student = make_student(["no", "yes"])
    first, second = (student.encode([(t, t) for t in texts]) for texts in zip(*PAIRS, strict=True))
    found = student.logits(PAIRS)
    for row in range(len(PAIRS)):
        one = np.array([row])
        h1, h2 = (
            student.model.encoder(batch["ids"], batch["lengths"]) for batch in (first.batch(one), second.batch(one))
        )
        features = torch.cat([h1, h2, h1 * h2, (h1 - h2).abs()], dim=-1)
        logits = student.model.logits(student.model.hidden(features))
        assert torch.equal(compare(h1, h2), features)
        np.testing.assert_allclose(found[row], logits[0].detach().numpy(), atol=1e-6)


def test_order_of_pairs_and_of_sentences_matters() -> None:
    student = make_student(["no", "yes"])
    found = student.logits(PAIRS)
    np.testing.assert_allclose(student.logits(PAIRS[::-1]), found[::-1], atol=1e-6)
    swapped = student.logits([(b, a) for a, b in PAIRS])
    assert not np.allclose(swapped[0], found[0], atol=1e-5)
    np.testing.assert_allclose(swapped[2], found[2], atol=1e-6)
    # Second sentences are cut too.
    student = make_student(["no", "yes"])
    sentences = student.encode(PAIRS)
    assert sentences.second.lengths.tolist() == [3, 4, 1]
    swapped = student.encode([(second, first) for first, second in PAIRS])
    # A pair's length is that of its longer sentence, whichever it is.
    assert sentences.lengths.tolist() == swapped.lengths.tolist() == [3, 4, 1]
    # A pair costs no second encoder.
    pair, single = make_student(["no", "yes"]), make_student(["no", "yes"], pair=False)
    extra = pair.parameters(embeddings=True) - single.parameters(embeddings=True)
    assert extra == 3 * 2 * SETTINGS.hidden * SETTINGS.classifier


@pytest.mark.parametrize("lengths", [[4, 1, 3], [4, 4, 4]])
def test_reversing_leaves_the_padding_behind(lengths: list[int]) -> None:
    vectors = torch.arange(24.0).view(3, 4, 2)
    found = reverse(vectors, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        assert torch.equal(found[row, :length], vectors[row, :length].flip(0))
        assert torch.equal(found[row, length:], vectors[row, length:])


SIMPLE_WORDS = ["a", "film", "good", "dull", "plot", "not"]
COMMON = {"dropout": 0.0, "max_words": 9}
SIMPLE_SETTINGS: dict[str, dict[str, Any]] = {
    "bilstm": COMMON | {"hidden": 5, "classifier": 5, "embeddings": "multichannel"},
    "biattentive": COMMON
    | {"tokens": "words", "model": None, "embedding_size": None, "feedforward": 6, "hidden": 5, "shared": 7}
    | {"pools": ["max", "mean", "self"], "classifier": 4},
    "cnn": COMMON | {"widths": [2, 3], "filters": 4, "classifier": 5, "embeddings": "trained"},
    "static": COMMON | {"classifier": 5, "embeddings": "multichannel"},
    "regression": COMMON | {"ngrams": 2, "buckets": 97},
}
TEXTS = ["film", "a good film", "not a good plot a film", "dull dull"]


def settings(architecture: str, **changes: Any) -> StudentSettings:
    values = SIMPLE_SETTINGS[architecture] | {"architecture": architecture}
    return student_settings(values | changes)


def make_student_simple(architecture: str, pair: bool = False) -> Student:
    torch.manual_seed(3)
    config = StudentConfig(len(SIMPLE_WORDS) + 2, 6, settings(architecture), pair, ["no", "yes"])
    model = build_student(config, None)
    return Student(model.eval(), build_tokenizer(SIMPLE_WORDS, True), torch.device("cpu"))


@pytest.mark.parametrize("architecture", SIMPLE_SETTINGS)
def test_padding_changes_no_logit(architecture: str) -> None:
    student = make_student_simple(architecture)
    batch = student.encode(TEXTS).batch(np.arange(len(TEXTS)))
    together = student.model.outputs(batch)["logits"].detach().numpy()
    alone = np.concatenate([student.logits([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert np.ptp(alone[:, 0]) > 1e-4


@pytest.mark.parametrize("architecture", SIMPLE_SETTINGS)
def test_every_one_of_them_compares_pairs_and_learns(architecture: str) -> None:
    student = make_student_simple(architecture, pair=True)
    pairs = [(a, b) for a in TEXTS for b in TEXTS]
    labels = torch.tensor([int("film" in a and "film" in b) for a, b in pairs])
    batch = student.encode(pairs).batch(np.arange(len(pairs)))
    optimiser = torch.optim.Adam(student.model.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        value = torch.nn.functional.cross_entropy(student.model.outputs(batch)["logits"], labels)
        losses.append(value.item())
        value.backward()
        optimiser.step()
        optimiser.zero_grad()
    assert losses[-1] < 0.5 * losses[0]


def test_encoders_by_hand() -> None:
    encoder = CNNEncoder(9, 3, settings("cnn")).eval()
    ids, lengths = torch.tensor([[2, 5, 3, 4]]), torch.tensor([4])
    vectors = encoder.embeddings(ids)[0]
    expected = []
    for layer in encoder.filters:
        size = layer.kernel_size[0]
        windows = [(layer.weight * vectors[i : i + size].T).sum((1, 2)) + layer.bias for i in range(4 - size + 1)]
        expected.append(torch.stack(windows).relu().amax(0))
    assert torch.allclose(encoder(ids, lengths)[0], torch.cat(expected), atol=1e-6)
    # The static encoder is a mean.
    encoder = StaticEncoder(9, 3, settings("static", embeddings="trained")).eval()
    ids, lengths = torch.tensor([[2, 5, 3, 0], [7, 0, 0, 0]]), torch.tensor([3, 1])
    table = encoder.embeddings.trained.weight
    expected = torch.stack([table[[2, 5, 3]].mean(0), table[7]])
    assert torch.allclose(encoder(ids, lengths), expected, atol=1e-6)
    # Ngrams know the order of words and single words do not.
    ids, turned, lengths = torch.tensor([[2, 5]]), torch.tensor([[5, 2]]), torch.tensor([2])
    for ngrams, same in ((1, True), (2, False)):
        torch.manual_seed(1)
        encoder = RegressionEncoder(9, 3, settings("regression", ngrams=ngrams)).eval()
        assert torch.allclose(encoder(ids, lengths), encoder(turned, lengths)) is same
    # A regression adds the words' mean, and the n-grams' sum over the norm of their weights.
    encoder = RegressionEncoder(9, 3, settings("regression")).eval()
    ids, lengths = torch.tensor([[2, 5]]), torch.tensor([2])
    with torch.no_grad():
        encoder.squares.weight.fill_(4.0)
    buckets, _ = encoder.buckets(ids, lengths)
    expected = encoder.embeddings(ids)[0].mean(0) + encoder.table(buckets)[0].sum(0) / math.sqrt(3 * 4.0)
    assert torch.allclose(encoder(ids, lengths)[0], expected, atol=1e-6)
