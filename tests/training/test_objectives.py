"""Losses: values and gradients by hand."""

import math
from typing import Any

import pytest
import torch

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.params import Objective
from pipeline_lib.training.objectives import logits_loss, objective_loss, patience_loss

CLASSES = KINDS["classification"]
STUDENT = torch.tensor([[1.0, -1.0], [0.0, 2.0]])
TEACHER = torch.tensor([[3.0, -1.0], [1.0, 1.0]])
LABELS = torch.tensor([0, 0])


def log_sum(a: float, b: float) -> float:
    return math.log(math.exp(a) + math.exp(b))


def test_losses_by_hand() -> None:
    assert logits_loss(STUDENT, TEACHER).item() == pytest.approx(((4 + 0) + (1 + 1)) / 2)
    assert logits_loss(TEACHER, TEACHER).item() == 0
    expected = ((log_sum(1, -1) - 1) + (log_sum(0, 2) - 0)) / 2
    assert CLASSES.loss(STUDENT, LABELS).item() == pytest.approx(expected)


@pytest.mark.parametrize("t", [0.5, 1.0, 4.0])
def test_soft_label_loss_by_hand(t: float) -> None:
    expected = 0.0
    for student, teacher in zip(STUDENT.tolist(), TEACHER.tolist(), strict=True):
        scaled, targets = [s / t for s in student], [x / t for x in teacher]
        p = [math.exp(x - log_sum(*targets)) for x in targets]
        expected -= sum(q * (s - log_sum(*scaled)) for q, s in zip(p, scaled, strict=True)) / 2
    assert CLASSES.soft_loss(STUDENT, TEACHER, t).item() == pytest.approx(expected * t**2, rel=1e-5)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"logits": 1.0}, lambda mse, soft, hard: mse),
        ({"labels": 1.0}, lambda mse, soft, hard: hard),
        ({"soft_labels": 1.0, "temperature": 2.0}, lambda mse, soft, hard: soft),
        ({"logits": 0.25, "labels": 0.75}, lambda mse, soft, hard: 0.25 * mse + 0.75 * hard),
        (
            {"logits": 0.5, "soft_labels": 0.3, "labels": 0.2, "temperature": 2.0},
            lambda mse, soft, hard: 0.5 * mse + 0.3 * soft + 0.2 * hard,
        ),
    ],
)
def test_objectives_are_weighted_sums(weights: dict[str, float], expected: Any) -> None:
    objective = Objective.model_validate(weights)
    parts = [
        loss.item()
        for loss in (
            logits_loss(STUDENT, TEACHER),
            CLASSES.soft_loss(STUDENT, TEACHER, 2.0),
            CLASSES.loss(STUDENT, LABELS),
        )
    ]
    batch = {"logits": TEACHER, "labels": LABELS}
    found = objective_loss(objective.weights, {"logits": STUDENT}, batch, objective.temperature)
    assert found.shape == () and found.item() == pytest.approx(expected(*parts))


def test_what_an_objective_does_not_weigh_may_be_absent() -> None:
    hard, soft = Objective(labels=1.0), Objective(logits=1.0, labels=0.0)
    own = {"logits": STUDENT}
    assert objective_loss(hard.weights, own, {"labels": LABELS}) == CLASSES.loss(STUDENT, LABELS)
    found = objective_loss(soft.weights, own, {"logits": TEACHER})
    assert found == logits_loss(STUDENT, TEACHER)


def test_patience_by_hand() -> None:
    student = torch.tensor([[[3.0, 4.0], [0.0, 2.0], [9.0, 9.0]], [[1.0, 0.0], [5.0, 0.0], [0.0, 1.0]]])
    teacher = torch.tensor([[[6.0, 8.0], [1.0, 0.0]], [[0.0, -2.0], [-1.0, 0.0]]])
    # Squared distances on the unit circle: the same direction 0, a right angle 2, opposite 4.
    assert patience_loss(student, teacher).item() == pytest.approx((0 + 2 + 2 + 4) / 4)
    assert patience_loss(10 * student, teacher).item() == pytest.approx(2.0)


def test_patience_leaves_the_last_layer_alone() -> None:
    student = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
    patience_loss(student, torch.ones(2, 2, 4)).backward()
    assert (student.grad[:, 2] == 0).all() and (student.grad[:, :2] != 0).any(dim=-1).all()


def test_patience_stands_beside_the_weights_that_add_up_to_one() -> None:
    weights = {"labels": 0.4, "soft_labels": 0.6, "temperature": 2.0, "patience": 30.0}
    objective = Objective.model_validate(weights)
    assert objective.needs_states and objective.needs_teacher
    student, teacher = torch.eye(2).view(1, 2, 2).repeat(2, 1, 1), torch.ones(2, 1, 2)
    batch = {"logits": TEACHER, "labels": LABELS, "states": teacher}
    own = {"logits": STUDENT, "states": student}
    found = objective_loss(objective.weights, own, batch, objective.temperature)
    plain = 0.4 * CLASSES.loss(STUDENT, LABELS) + 0.6 * CLASSES.soft_loss(STUDENT, TEACHER, 2.0)
    assert found.item() == pytest.approx(plain.item() + 30 * (2 - 2**0.5), rel=1e-5)
    with pytest.raises(ValueError, match="the weights of logits, soft_labels, labels must add up"):
        Objective.model_validate({"patience": 1.0})
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        Objective.model_validate({"labels": 1.0, "patience": -1.0})


@pytest.mark.parametrize("name", ["logits", "soft_labels", "labels"])
def test_rows_that_count_more_weigh_more(name: str) -> None:
    draw = torch.Generator().manual_seed(1)
    own, teacher = (torch.randn(3, 2, generator=draw) for _ in range(2))
    batch = {"logits": teacher, "labels": torch.tensor([0, 1, 1])}
    outputs = {"logits": own.requires_grad_()}

    def loss(rows: list[int], **weights: torch.Tensor) -> torch.Tensor:
        part = {key: values[rows] for key, values in batch.items()} | weights
        return objective_loss({name: 1.0}, {"logits": outputs["logits"][rows]}, part, 2.0)

    weighted = loss([0, 1, 2], weights=torch.tensor([2.0, 1.0, 0.0]))
    assert weighted.item() == pytest.approx(loss([0, 0, 1]).item(), rel=1e-6)
    even = loss([0, 1, 2], weights=torch.full((3,), 0.7))
    assert even.item() == pytest.approx(loss([0, 1, 2]).item(), rel=1e-6)
    weighted.backward()
    assert own.grad[2].abs().sum() == 0 < own.grad[0].abs().sum()


def test_the_loss_of_several_labels_is_that_of_each_as_two_classes() -> None:
    marks = torch.tensor([[1, 0], [0, 1]], dtype=torch.uint8)
    expected = [CLASSES.loss(torch.stack([torch.zeros(2), STUDENT[:, n]], 1), marks[:, n].long()) for n in range(2)]
    assert torch.allclose(KINDS["multilabel"].loss(STUDENT, marks), sum(expected))


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_soft_labels_of_several_labels(temperature: float) -> None:
    def of_two(logits: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.zeros(2), logits], 1)

    expected = sum(CLASSES.soft_loss(of_two(STUDENT[:, n]), of_two(TEACHER[:, n]), temperature) for n in range(2))
    weights, targets = {"soft_labels": 1.0}, {"logits": TEACHER}
    outputs = {"logits": STUDENT}
    found = objective_loss(weights, outputs, targets, temperature, "multilabel")
    assert torch.allclose(found, expected)
    weighted = targets | {"weights": torch.tensor([1.0, 1.0])}
    found = objective_loss(weights, outputs, weighted, temperature, "multilabel")
    assert torch.allclose(found, expected)
