"""Learning from a teacher that runs beside the student: states and attention, token by token."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.fitting import check_beside
from pipeline_lib.models.networks.imitation import Imitation
from pipeline_lib.models.students.student import Student
from pipeline_lib.models.teacher import load_classifier
from pipeline_lib.params import Method, student_settings
from pipeline_lib.training.distillation.initialisation import start_from_layers
from pipeline_lib.training.distillation.online_teacher import RunningTeacher
from pipeline_lib.training.objectives import layers_loss, objective_loss, token_loss
from tests.kit.pretrained import write_model

PAIRS = [("A good film.", "the plots"), ("dull", "not good"), ("film", "the film is a good film")]
OPEN = ("bert", "roberta", "distilbert")
"""Families whose attention can be replaced; MPNet keeps its own."""
LAYERS = {
    **{"architecture": "transformer", "model": "minilm", "layers": [0, 1], "pool": "last"},
    **{"classifier": None, "dropout": 0.0, "max_words": 14},
}
STUDENT = student_settings(LAYERS)


def write_teacher(folder: Path, family: str) -> Path:
    write_model(folder, family)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model, _ = load_classifier(folder, ["no", "yes"])
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=OPEN)
def teacher(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_teacher(tmp_path_factory.mktemp(request.param), request.param)


def make_student(folder: Path, **changes: Any) -> Student:
    settings = student_settings(LAYERS | changes)
    start = start_from_layers(folder, settings)
    torch.manual_seed(2)
    model = start.build(settings, True, ["no", "yes"])
    return Student(model.eval(), start.tokenizer, torch.device("cpu"))


def beside(folder: Path, layers: list[int], student: Student | None = None, scores: bool = True) -> RunningTeacher:
    own = student or make_student(folder)
    return RunningTeacher.load(folder, layers, own.model, own.tokenizer, "cpu", scores)


def test_targets_are_the_teachers_own_without_padding(teacher: Path) -> None:
    batch = make_student(teacher).encode(PAIRS).batch(np.arange(3))
    found = beside(teacher, [1, 3]).targets(batch)
    lengths = batch["lengths"].tolist()
    assert len(set(lengths)) > 1
    whole = AutoModel.from_pretrained(teacher, attn_implementation="eager").eval()
    states, weights, embeddings = [], [], []
    for row, length in enumerate(lengths):
        inputs = {"input_ids": batch["ids"][row : row + 1, :length]}
        if "segments" in batch:
            inputs["token_type_ids"] = batch["segments"][row : row + 1, :length]
        with torch.inference_mode():
            own = whole(**inputs, output_hidden_states=True, output_attentions=True)
        embeddings.append(own.hidden_states[0][0])
        states.append(torch.stack([own.hidden_states[n][0] for n in (1, 3)]))
        weights.append(torch.stack([own.attentions[n - 1][0] for n in (1, 3)]))
    close = {"atol": 1e-5}
    assert torch.allclose(found["teacher_embeddings"], torch.cat(embeddings), **close)
    assert torch.allclose(found["teacher_hidden"], torch.cat(states, 1), **close)
    # What the softmax is taken of: (layers, pairs of tokens, heads), row by row.
    scores = found["teacher_attentions"].split([n * n for n in lengths], dim=1)
    for own, expected, length in zip(scores, weights, lengths, strict=True):
        square = own.view(2, length, length, 2).permute(0, 3, 1, 2)
        assert torch.allclose(square.softmax(-1), expected, **close)
        assert not torch.allclose(square, expected, atol=1e-2)


def test_the_first_layers_imitate_themselves_at_once(teacher: Path) -> None:
    student = make_student(teacher)
    model, own = Imitation(student.model, 16), beside(teacher, [1, 2], student)
    batch = student.encode(PAIRS).batch(np.arange(3))
    for projection in (model.embeddings, model.hidden):
        torch.nn.init.eye_(projection.weight)
    weights = {"embeddings": 1.0, "hidden": 2.0, "attentions": 3.0}
    targets = batch | own.targets(batch)
    loss = objective_loss(weights, model.outputs(batch), targets)
    assert loss.item() == pytest.approx(0.0, abs=1e-9)
    other = batch | beside(teacher, [2, 3]).targets(batch)
    parts = {name: objective_loss({name: 1.0}, model.outputs(batch), other).item() for name in weights}
    assert parts["embeddings"] == pytest.approx(0.0, abs=1e-9)
    assert parts["hidden"] > 1e-5 and parts["attentions"] > 1e-9
    whole = objective_loss(weights, model.outputs(batch), other).item()
    assert whole == pytest.approx(sum(weights[n] * parts[n] for n in weights), rel=1e-5)


def test_projections_learn_and_the_teacher_does_not(teacher: Path) -> None:
    student = make_student(teacher)
    batch = student.encode(PAIRS).batch(np.arange(3))
    own = beside(teacher, [1, 3], student, scores=False)
    model = Imitation(student.model, own.width)
    outputs = model.outputs(batch)
    assert "attentions" not in outputs and "teacher_attentions" not in own.targets(batch)
    targets = batch | own.targets(batch)
    objective_loss({"embeddings": 1.0, "hidden": 1.0}, outputs, targets).backward()
    learned = [model.embeddings.weight, model.hidden.weight]
    learned += list(student.model.encoder.model.get_input_embeddings().parameters())
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in learned)
    assert all(p.grad is None and not p.requires_grad for p in own.encoder.parameters())
    assert not own.encoder.training


def test_a_model_that_keeps_its_attention_is_refused(tmp_path: Path) -> None:
    folder = write_teacher(tmp_path, "mpnet")
    assert beside(folder, [1], scores=False).width == 16
    with pytest.raises(PotstillError, match=r"objective\.attentions .* a mpnet model does not"):
        beside(folder, [1])
    own, target = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[0.0, 0.0], [0.0, 1.0]])
    assert token_loss(own, target).item() == pytest.approx((1 + 4 + 0 + 1) / 4)
    assert layers_loss(own[:, None], target[:, None]).item() == pytest.approx(5 / 2 + 1 / 2)


def row_with(**changes: Any) -> Method:
    values = {
        **{"student": "layers", "start": "model", "data": "original", "iterations": None},
        **{"objective": {"labels": 1.0, "attentions": 1.0}, "optimiser": "short"},
        **{"baseline": None, "tasks": None, "teacher_runs": {"layers": [1, 3]}},
    }
    return Method.model_validate(values | changes)


def test_what_a_teacher_lacks_is_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "a", "bert")
    check_beside("methods.tiny", row_with(), STUDENT, folder, folder)
    with pytest.raises(PotstillError, match=r"methods\.tiny\.teacher_runs\.layers: 4, but .* 3 "):
        check_beside("methods.tiny", row_with(teacher_runs={"layers": [4]}), STUDENT, folder, folder)
    other = write_model(tmp_path / "b", "distilbert")
    config = other / "config.json"
    config.write_text(config.read_text().replace('"n_heads": 2', '"n_heads": 4'))
    message = r"methods\.tiny\.objective\.attentions: .* has 2 attention heads, its teacher 4"
    with pytest.raises(PotstillError, match=message):
        check_beside("methods.tiny", row_with(), STUDENT, folder, other)
    hidden = row_with(objective={"labels": 1.0, "hidden": math.pi})
    check_beside("methods.tiny", hidden, STUDENT, folder, other)
    # Other word pieces are refused.
    folder = write_teacher(tmp_path / "teacher", "bert")
    student = make_student(write_model(tmp_path / "model", "roberta"))
    with pytest.raises(PotstillError, match=r"teacher: .* so their states cannot be compared"):
        beside(folder, [1], student)
