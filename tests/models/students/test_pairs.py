"""Siamese students: one encoder for both sentences, compared; and the score of a regression."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import pipeline_lib.models.students.huggingface  # noqa: F401  registers the students
from pipeline_lib.models.networks.encoders import reverse
from pipeline_lib.models.networks.student import StudentConfig, compare
from pipeline_lib.models.students.student import Student, build_student, load_student, save_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import student_settings

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


def test_students_of_pairs_survive_saving(tmp_path: Path) -> None:
    student = make_student(["score"])
    assert student.logits(PAIRS).shape == (3, 1)
    save_student(tmp_path / "student", student.model, student.tokenizer)
    loaded = load_student(tmp_path / "student")
    assert loaded.is_pair and loaded.label_names == ["score"]
    np.testing.assert_array_equal(loaded.logits(PAIRS), student.logits(PAIRS))
    # Transformers loads a student of pairs.
    student = make_student(["no", "yes"])
    save_student(tmp_path / "student", student.model, student.tokenizer)
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "student").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "student")
    first, second = (
        tokenizer(list(texts), padding=True, truncation=True, max_length=4, return_tensors="pt")
        for texts in zip(*PAIRS, strict=True)
    )
    with torch.inference_mode():
        logits = model(**first, input_ids_2=second["input_ids"], attention_mask_2=second["attention_mask"]).logits
    np.testing.assert_allclose(logits.numpy(), student.logits(PAIRS), atol=1e-6)


@pytest.mark.parametrize("lengths", [[4, 1, 3], [4, 4, 4]])
def test_reversing_leaves_the_padding_behind(lengths: list[int]) -> None:
    vectors = torch.arange(24.0).view(3, 4, 2)
    found = reverse(vectors, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        assert torch.equal(found[row, :length], vectors[row, :length].flip(0))
        assert torch.equal(found[row, length:], vectors[row, length:])
