"""Losses: values and gradients by hand."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr
from sklearn.metrics import log_loss

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.params import Objective
from pipeline_lib.results.metrics import check_unit
from pipeline_lib.training.dev_scores import dev_score
from pipeline_lib.training.label_scale import LabelScale, scale_of
from pipeline_lib.training.objectives import label_loss, logits_loss, objective_loss, patience_loss, soft_label_loss

STUDENT = torch.tensor([[1.0, -1.0], [0.0, 2.0]])
TEACHER = torch.tensor([[3.0, -1.0], [1.0, 1.0]])
LABELS = torch.tensor([0, 0])


def log_sum(a: float, b: float) -> float:
    return math.log(math.exp(a) + math.exp(b))


def test_losses_by_hand() -> None:
    assert logits_loss(STUDENT, TEACHER).item() == pytest.approx(((4 + 0) + (1 + 1)) / 2)
    assert logits_loss(TEACHER, TEACHER).item() == 0
    # Label loss by hand.
    expected = ((log_sum(1, -1) - 1) + (log_sum(0, 2) - 0)) / 2
    assert label_loss(STUDENT, LABELS).item() == pytest.approx(expected)
    # Gradient of logits loss.
    student = STUDENT.clone().requires_grad_()
    logits_loss(student, TEACHER).backward()
    assert torch.allclose(student.grad, 2 * (STUDENT - TEACHER) / 2)
    # What an objective does not weigh may be absent.
    hard, soft = Objective(labels=1.0), Objective(logits=1.0, labels=0.0)
    own = {"logits": STUDENT}
    assert objective_loss(hard.weights, own, {"labels": LABELS}) == label_loss(STUDENT, LABELS)
    found = objective_loss(soft.weights, own, {"logits": TEACHER})
    assert found == logits_loss(STUDENT, TEACHER)
    # At high temperatures the gradient tends to (student - teacher) / classes / rows, centred.
    student = STUDENT.clone().requires_grad_()
    soft_label_loss(student, TEACHER, 1000.0).backward()
    difference = STUDENT - TEACHER
    expected = (difference - difference.mean(1, keepdim=True)) / 2 / 2
    assert torch.allclose(student.grad, expected, atol=1e-3)


@pytest.mark.parametrize("t", [0.5, 1.0, 4.0])
def test_soft_label_loss_by_hand(t: float) -> None:
    expected = 0.0
    for student, teacher in zip(STUDENT.tolist(), TEACHER.tolist(), strict=True):
        scaled, targets = [s / t for s in student], [x / t for x in teacher]
        p = [math.exp(x - log_sum(*targets)) for x in targets]
        expected -= sum(q * (s - log_sum(*scaled)) for q, s in zip(p, scaled, strict=True)) / 2
    assert soft_label_loss(STUDENT, TEACHER, t).item() == pytest.approx(expected * t**2, rel=1e-5)


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
        for loss in (logits_loss(STUDENT, TEACHER), soft_label_loss(STUDENT, TEACHER, 2.0), label_loss(STUDENT, LABELS))
    ]
    batch = {"logits": TEACHER, "labels": LABELS}
    found = objective_loss(objective.weights, {"logits": STUDENT}, batch, objective.temperature)
    assert found.shape == () and found.item() == pytest.approx(expected(*parts))


def test_patience() -> None:
    student = torch.tensor([[[3.0, 4.0], [0.0, 2.0], [9.0, 9.0]], [[1.0, 0.0], [5.0, 0.0], [0.0, 1.0]]])
    teacher = torch.tensor([[[6.0, 8.0], [1.0, 0.0]], [[0.0, -2.0], [-1.0, 0.0]]])
    # Squared distances on the unit circle: the same direction 0, a right angle 2, opposite 4.
    assert patience_loss(student, teacher).item() == pytest.approx((0 + 2 + 2 + 4) / 4)
    assert patience_loss(10 * student, teacher).item() == pytest.approx(2.0)
    # Patience is the papers sum over layers and rows.
    generator = torch.Generator().manual_seed(1)
    student, teacher = (torch.randn(5, n, 8, generator=generator) for n in (4, 3))
    total = 0.0
    for row in range(5):
        for layer in range(3):
            own, target = student[row, layer], teacher[row, layer]
            total += (own / own.norm() - target / target.norm()).norm().item() ** 2
    assert patience_loss(student, teacher).item() == pytest.approx(total / 5 / 3, rel=1e-5)
    # Patience leaves the last layer alone.
    student = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
    patience_loss(student, torch.ones(2, 2, 4)).backward()
    assert (student.grad[:, 2] == 0).all() and (student.grad[:, :2] != 0).any(dim=-1).all()
    # Patience stands beside the weights that add up to one.
    weights = {"labels": 0.4, "soft_labels": 0.6, "temperature": 2.0, "patience": 30.0}
    objective = Objective.model_validate(weights)
    assert objective.needs_states and objective.needs_teacher
    student, teacher = torch.eye(2).view(1, 2, 2).repeat(2, 1, 1), torch.ones(2, 1, 2)
    batch = {"logits": TEACHER, "labels": LABELS, "states": teacher}
    own = {"logits": STUDENT, "states": student}
    found = objective_loss(objective.weights, own, batch, objective.temperature)
    plain = 0.4 * label_loss(STUDENT, LABELS) + 0.6 * soft_label_loss(STUDENT, TEACHER, 2.0)
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
    expected = [label_loss(torch.stack([torch.zeros(2), STUDENT[:, n]], 1), marks[:, n].long()) for n in range(2)]
    assert torch.allclose(label_loss(STUDENT, marks), sum(expected))


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_soft_labels_of_several_labels(temperature: float) -> None:
    def of_two(logits: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.zeros(2), logits], 1)

    expected = sum(soft_label_loss(of_two(STUDENT[:, n]), of_two(TEACHER[:, n]), temperature) for n in range(2))
    weights, targets = {"soft_labels": 1.0}, {"logits": TEACHER}
    outputs = {"logits": STUDENT}
    found = objective_loss(weights, outputs, targets, temperature, "multilabel")
    assert torch.allclose(found, expected)
    weighted = targets | {"weights": torch.tensor([1.0, 1.0])}
    found = objective_loss(weights, outputs, weighted, temperature, "multilabel")
    assert torch.allclose(found, expected)


LABEL_LABELS = np.random.default_rng(0).integers(-64, 65, 50).astype(np.float32) / 64


def test_labels_have_a_scale_or_are_refused() -> None:
    # Powers of two are exact: the same numbers to the last bit.
    in_quarters = LABEL_LABELS * 4 + 8
    assert np.array_equal(
        LabelScale.of(in_quarters).standardise(in_quarters), LabelScale.of(LABEL_LABELS).standardise(LABEL_LABELS)
    )
    percent = ((LABEL_LABELS + 1) * 50).astype(np.float32)
    assert LabelScale.of(percent).standardise(percent) == pytest.approx(
        LabelScale.of(LABEL_LABELS).standardise(LABEL_LABELS), abs=1e-5
    )
    # Class numbers have no scale.
    assert scale_of(np.array([0, 1, 1])) is None
    assert scale_of(LABEL_LABELS) == LabelScale.of(LABEL_LABELS)
    # Labels that are all the same are refused.
    with pytest.raises(PotstillError, match="all 4 training labels are 3"):
        LabelScale.of(np.full(4, 3.0, np.float32))
    # The inverse undoes a rescaling.
    layer, scale = torch.nn.Linear(3, 1), LabelScale.of(LABEL_LABELS * 10 + 40)
    x = torch.randn(5, 3)
    before = layer(x)
    scale.rescale(layer)
    assert not torch.allclose(layer(x), before, atol=1.0)
    scale.inverse.rescale(layer)
    torch.testing.assert_close(layer(x), before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_a_rescaled_layer_answers_in_the_labels_unit(bias: bool) -> None:
    layer = torch.nn.Linear(3, 1, bias=bias)
    x = torch.randn(5, 3)
    standard = layer(x).detach().numpy()
    scale = LabelScale(mean=2.5, deviation=40.0)
    scale.rescale(layer)
    assert layer(x).detach().numpy() == pytest.approx(standard * 40.0 + 2.5, rel=1e-5)


DRAW = np.random.default_rng(1)


def test_losses_of_every_kind() -> None:
    labels, outputs = np.array([0, 2, 1, 1]), DRAW.normal(size=(4, 3)).astype(np.float32)
    probabilities = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    scored = dev_score("accuracy", 1, labels, outputs, "loss", None)
    assert scored.loss == pytest.approx(log_loss(labels, probabilities), rel=1e-5)
    assert scored.score == np.mean(outputs.argmax(1) == labels)
    assert scored.merit == -scored.loss
    # Of several labels it is the binary cross entropy summed over them.
    labels = np.array([[0, 1], [1, 1], [1, 0]], np.uint8)
    outputs = DRAW.normal(size=(3, 2)).astype(np.float32)
    each = [log_loss(labels[:, n], 1 / (1 + np.exp(-outputs[:, n]))) for n in (0, 1)]
    scored = dev_score("f1_micro", 1, labels, outputs, "loss", None)
    assert scored.loss == pytest.approx(sum(each), rel=1e-5)
    # Of a regression it is the squared error in standard units.
    labels, scale = np.array([10.0, 30.0, 20.0], np.float32), LabelScale(16.0, 4.0)
    outputs = np.array([[-1.0], [3.0], [1.5]], np.float32)
    scored = dev_score("pearson", 1, labels, outputs, "loss", scale)
    # Standardised labels are -1.5, 3.5 and 1.
    assert scored.loss == pytest.approx((0.5**2 + 0.5**2 + 0.5**2) / 3)
    assert scored.score == pytest.approx(pearsonr(labels, outputs[:, 0]).statistic)
    # By the metric no loss is computed.
    labels, outputs = np.array([0, 1]), np.array([[2.0, 1.0], [3.0, 1.0]], np.float32)
    scored = dev_score("accuracy", 1, labels, outputs, "metric", None)
    assert (scored.score, scored.loss, scored.merit) == (0.5, None, 0.5)


RNG = np.random.default_rng(1)
UNIT_LABELS = RNG.uniform(0, 5, 200).astype(np.float32)
NOISY = (UNIT_LABELS + RNG.normal(0, 0.5, 200)).astype(np.float32)


def test_scores_in_the_labels_unit_pass() -> None:
    # A weak teacher's scores are drawn to the mean; a useless one's are all alike, or too wide.
    weak = 2.5 + 0.3 * (UNIT_LABELS + RNG.normal(0, 1.5, 200) - 2.5)
    for scores in (NOISY, weak, np.full(200, 2.0), RNG.permutation(UNIT_LABELS)):
        check_unit(Path("mine"), UNIT_LABELS, np.float32(scores))


@pytest.mark.parametrize("unit", [NOISY / 5, NOISY * 20, NOISY + 4, -NOISY])
def test_scores_in_another_unit_are_refused(unit: np.ndarray) -> None:
    with pytest.raises(PotstillError, match=r"mine: .*mean .*another unit.*mean 2\.\d"):
        check_unit(Path("mine"), UNIT_LABELS, unit)
