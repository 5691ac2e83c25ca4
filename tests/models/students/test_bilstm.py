"""The student `bilstm`: padding changes nothing, sizes by hand, saved and loaded."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.networks.encoders import WordEmbeddings
from pipeline_lib.models.networks.student import StudentConfig
from pipeline_lib.models.students.student import Student, build_student, load_student, predict_sentences, save_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import StudentSettings, student_settings

WORDS = ["a", "film", "good", "dull", "n't", "is", ".", "plot"]
TEXTS = ["A good film.", "dull", "The plot isn't good, is it?", "", "film film film a a a a a a a"]
ROWS, WIDTH, HIDDEN, CLASSIFIER = len(WORDS) + 2, 6, 5, 7


def settings(**changes: Any) -> StudentSettings:
    values = {"architecture": "bilstm", "hidden": HIDDEN, "classifier": CLASSIFIER}
    values |= {"embeddings": "trained", "dropout": 0.0, "max_words": 8}
    return student_settings(values | changes)


def make_student(vectors: np.ndarray | None = None, **changes: Any) -> Student:
    torch.manual_seed(3)
    config = StudentConfig(ROWS, WIDTH, settings(**changes), False, ["no", "yes", "so"])
    model = build_student(config, vectors)
    return Student(model.eval(), build_tokenizer(WORDS, True), torch.device("cpu"))


def test_starting_points_and_order() -> None:
    logits = make_student().logits(["good film", "film good"])
    assert not np.allclose(logits[0], logits[1], atol=1e-5)
    vectors = np.ones((ROWS, WIDTH), np.float32)
    assert torch.equal(make_student(vectors).model.encoder.embeddings.trained.weight, torch.ones(ROWS, WIDTH))
    one, other = (make_student().model.state_dict() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not torch.equal(one["encoder.embeddings.trained.weight"], torch.ones(ROWS, WIDTH))


@pytest.mark.parametrize(("embeddings", "channels"), [("trained", 1), ("static", 1), ("multichannel", 2)])
def test_parameters_by_hand(embeddings: str, channels: int) -> None:
    student = make_student(embeddings=embeddings)
    gates = 4 * HIDDEN
    lstm = 2 * (gates * WIDTH * channels + gates * HIDDEN + 2 * gates)
    head = (2 * HIDDEN * CLASSIFIER + CLASSIFIER) + (CLASSIFIER * 3 + 3)
    assert student.parameters(embeddings=False) == lstm + head
    assert student.parameters(embeddings=True) == lstm + head + channels * ROWS * WIDTH


@pytest.mark.parametrize("mode", ["trained", "static", "multichannel"])
def test_channels_of_the_embeddings(mode: str) -> None:
    embeddings = WordEmbeddings(4, 2, mode)
    vectors = torch.arange(8.0).reshape(4, 2)
    embeddings.load(vectors)
    found = embeddings(torch.tensor([[3, 1]]))
    channels = 2 if mode == "multichannel" else 1
    assert embeddings.width == 2 * channels
    assert torch.equal(found[0], torch.cat([vectors[[3, 1]]] * channels, -1))
    trained = [name for name, p in embeddings.named_parameters() if p.requires_grad]
    assert trained == {"static": []}.get(mode, ["trained.weight"])


def test_texts_of_any_length_and_order() -> None:
    student = make_student()
    sentences = student.encode(TEXTS)
    assert sentences.lengths.tolist() == [4, 1, 8, 1, 8]
    assert sentences.ids[sentences.offsets[3]] == student.tokenizer.token_to_id("[MASK]")
    logits = student.logits(["", " ", "good"])
    assert np.isfinite(logits).all() and np.array_equal(logits[0], logits[1])
    assert np.array_equal(logits[0], student.logits(["unheard"])[0])
    assert not np.allclose(logits[0], logits[2], atol=1e-5)
    # Predictions stand in the texts order.
    student = make_student()
    texts = [" ".join(["film"] * n + ["good"]) for n in (5, 1, 3, 1, 0, 5)]
    logits = student.logits(texts)
    assert logits.shape == (6, 3) and logits.dtype == np.float32
    singles = np.concatenate([student.logits([text]) for text in texts])
    assert np.allclose(logits, singles, atol=1e-6)
    assert student.logits([]).shape == (0, 3)
    again = predict_sentences(student.model, student.encode(texts), student.device)
    assert np.array_equal(again, logits)
    # Dropout is off when predicting.
    student = make_student(dropout=0.5)
    batch = student.encode(["a good film"]).batch(np.array([0]))
    student.model.train()
    noisy = [student.model.outputs(batch)["logits"].detach() for _ in range(2)]
    assert not torch.equal(*noisy)
    assert np.array_equal(student.logits(["a good film"]), student.logits(["a good film"]))
    assert not student.model.training


def test_save_and_load(tmp_path: Path) -> None:
    student = make_student(embeddings="multichannel")
    expected = student.logits(TEXTS)
    save_student(tmp_path / "s", student.model, student.tokenizer)
    assert (tmp_path / "s" / "model.safetensors").exists()
    loaded = load_student(tmp_path / "s")
    assert loaded.label_names == ["no", "yes", "so"]
    assert np.array_equal(loaded.logits(TEXTS), expected)
    assert loaded.parameters(True) == student.parameters(True)
    assert loaded.model.config.settings == settings(embeddings="multichannel")
    # Equal weights give equal files.
    for name in ("a", "b"):
        student = make_student()
        save_student(tmp_path / name, student.model, student.tokenizer)
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_what_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "absent"):
        with pytest.raises(PotstillError, match="not a trained student"):
            load_student(tmp_path / name)


def test_training_and_predicting_import_no_transformers() -> None:
    # It takes longer to import than a thousand sentences to predict.
    module = "pipeline_lib.training.distillation.students"
    code = f"import sys, {module}; print('transformers' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
