"""The simpler students: padding plays no part, and what each one computes, by hand."""

from typing import Any

import numpy as np
import pytest
import torch

from pipeline_lib.models.networks.encoders import CNNEncoder, NgramEncoder, StaticEncoder
from pipeline_lib.models.networks.student import StudentConfig
from pipeline_lib.models.students.student import Student, build_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import StudentSettings, student_settings

WORDS = ["a", "film", "good", "dull", "plot", "not"]
COMMON = {"dropout": 0.0, "max_words": 9}
SETTINGS: dict[str, dict[str, Any]] = {
    "cnn": COMMON | {"widths": [2, 3], "filters": 4, "classifier": 5, "embeddings": "trained"},
    "static": COMMON | {"classifier": 5, "embeddings": "multichannel"},
    "linear": COMMON | {"ngrams": 2, "buckets": 97, "dimensions": 3},
}
TEXTS = ["film", "a good film", "not a good plot a film", "dull dull"]


def settings(architecture: str, **changes: Any) -> StudentSettings:
    values = SETTINGS[architecture] | {"architecture": architecture}
    return student_settings(values | changes)


def make_student(architecture: str, pair: bool = False) -> Student:
    torch.manual_seed(3)
    config = StudentConfig(len(WORDS) + 2, 6, settings(architecture), pair, ["no", "yes"])
    model = build_student(config, None)
    return Student(model.eval(), build_tokenizer(WORDS, True), torch.device("cpu"))


@pytest.mark.parametrize("architecture", SETTINGS)
def test_padding_changes_no_logit(architecture: str) -> None:
    student = make_student(architecture)
    batch = student.encode(TEXTS).batch(np.arange(len(TEXTS)))
    together = student.model.outputs(batch)["logits"].detach().numpy()
    alone = np.concatenate([student.logits([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert np.ptp(alone[:, 0]) > 1e-4


@pytest.mark.parametrize("architecture", SETTINGS)
def test_every_one_of_them_compares_pairs_and_learns(architecture: str) -> None:
    student = make_student(architecture, pair=True)
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
        encoder = NgramEncoder(9, 3, settings("linear", ngrams=ngrams)).eval()
        assert torch.allclose(encoder(ids, lengths), encoder(turned, lengths)) is same
    # A linear student is linear in its bag.
    student = make_student("linear")
    one, two, both = student.logits(["film", "dull", "film dull"])
    encoder = student.model.encoder
    bigram = encoder(torch.tensor([[3, 5]]), torch.tensor([2])) * 3
    bigram = bigram - encoder(torch.tensor([[3]]), torch.tensor([1]))
    bigram = bigram - encoder(torch.tensor([[5]]), torch.tensor([1]))
    expected = (one + two + student.model.logits(bigram).detach().numpy()[0]) / 3
    np.testing.assert_allclose(both, expected, atol=1e-5)
