"""The scores on dev by which evaluations are chosen; the unit of a regression's labels, and thresholds."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr
from sklearn.metrics import log_loss

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS, score
from pipeline_lib.base.kinds.calibration import log_losses
from pipeline_lib.training.dev_scores import LabelScale, dev_score, scale_of
from pipeline_lib.training.distillation.students import score_on_dev

DRAW = np.random.default_rng(1)
IN_64THS = np.random.default_rng(0).integers(-64, 65, 50).astype(np.float32) / 64


def test_of_classes_it_is_the_cross_entropy() -> None:
    labels, outputs = np.array([0, 2, 1, 1]), DRAW.normal(size=(4, 3)).astype(np.float32)
    probabilities = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    scored = dev_score("accuracy", 1, labels, outputs, "loss", None)
    assert scored.loss == pytest.approx(log_loss(labels, probabilities), rel=1e-5)
    assert scored.score == np.mean(outputs.argmax(1) == labels)
    assert scored.merit == -scored.loss


def test_of_several_labels_it_is_the_binary_cross_entropy_summed_over_them() -> None:
    labels = np.array([[0, 1], [1, 1], [1, 0]], np.uint8)
    outputs = DRAW.normal(size=(3, 2)).astype(np.float32)
    each = [log_loss(labels[:, n], 1 / (1 + np.exp(-outputs[:, n]))) for n in (0, 1)]
    scored = dev_score("f1_micro", 1, labels, outputs, "loss", None)
    assert scored.loss == pytest.approx(sum(each), rel=1e-5)


def test_of_a_regression_it_is_the_squared_error_in_standard_units() -> None:
    labels, scale = np.array([10.0, 30.0, 20.0], np.float32), LabelScale(16.0, 4.0)
    outputs = np.array([[-1.0], [3.0], [1.5]], np.float32)
    scored = dev_score("pearson", 1, labels, outputs, "loss", scale)
    # Standardised labels are -1.5, 3.5 and 1.
    assert scored.loss == pytest.approx((0.5**2 + 0.5**2 + 0.5**2) / 3)
    assert scored.score == pytest.approx(pearsonr(labels, outputs[:, 0]).statistic)


def test_by_the_metric_no_loss_is_computed() -> None:
    labels, outputs = np.array([0, 1]), np.array([[2.0, 1.0], [3.0, 1.0]], np.float32)
    scored = dev_score("accuracy", 1, labels, outputs, "metric", None)
    assert (scored.score, scored.loss, scored.merit) == (0.5, None, 0.5)


def test_a_change_of_unit_leaves_the_standard_labels_alone() -> None:
    # Powers of two are exact: the same numbers to the last bit.
    in_quarters = IN_64THS * 4 + 8
    assert np.array_equal(
        LabelScale.of(in_quarters).standardise(in_quarters), LabelScale.of(IN_64THS).standardise(IN_64THS)
    )
    percent = ((IN_64THS + 1) * 50).astype(np.float32)
    assert LabelScale.of(percent).standardise(percent) == pytest.approx(
        LabelScale.of(IN_64THS).standardise(IN_64THS), abs=1e-5
    )


@pytest.mark.parametrize("bias", [True, False])
def test_a_rescaled_layer_answers_in_the_labels_unit(bias: bool) -> None:
    layer = torch.nn.Linear(3, 1, bias=bias)
    x = torch.randn(5, 3)
    standard = layer(x).detach().numpy()
    scale = LabelScale(mean=2.5, deviation=40.0)
    scale.rescale(layer)
    assert layer(x).detach().numpy() == pytest.approx(standard * 40.0 + 2.5, rel=1e-5)


def test_what_has_no_scale() -> None:
    assert scale_of(np.array([0, 1, 1])) is None
    assert scale_of(IN_64THS) == LabelScale.of(IN_64THS)
    with pytest.raises(PotstillError, match="all 4 training labels are 3"):
        LabelScale.of(np.full(4, 3.0, np.float32))


def test_the_inverse_undoes_a_rescaling() -> None:
    layer, scale = torch.nn.Linear(3, 1), LabelScale.of(IN_64THS * 10 + 40)
    x = torch.randn(5, 3)
    before = layer(x)
    scale.rescale(layer)
    assert not torch.allclose(layer(x), before, atol=1.0)
    scale.inverse.rescale(layer)
    torch.testing.assert_close(layer(x), before, rtol=1e-5, atol=1e-5)


DRAWN = np.random.default_rng(0)
MARKS = (DRAWN.random(300) < 0.3).astype(np.int64)
MARGINS = MARKS + DRAWN.normal(scale=0.7, size=300) - 2.5
"""A student that nearly always says class 0, though its margins tell the classes apart."""


@pytest.mark.parametrize("positive", [0, 1])
def test_f1_is_best_at_the_moved_threshold(positive: int) -> None:
    outputs = np.stack([np.zeros(300), MARGINS], axis=1).astype(np.float32)

    def f1(shift: float) -> float:
        return score("f1", MARKS, outputs - np.array([0.0, shift]), positive)

    found = f1(KINDS["classification"].shifts(MARKS, outputs, "f1", positive)[1])
    assert found == pytest.approx(max(f1(m + 1e-4) for m in [*MARGINS, MARGINS.min() - 1]))
    assert found > f1(0.0) + (0.3 if positive else 0.02)


@pytest.mark.parametrize("select", ["metric", "loss"])
def test_a_step_is_chosen_by_the_threshold_that_the_student_gets(select: str) -> None:
    # As they are, the better ranked of two outputs say class 0 everywhere, and have the lower F1.
    ranked = np.stack([np.zeros(300), 2.0 * MARKS - 4.0], axis=1).astype(np.float32)
    noisy = np.stack([np.zeros(300), MARGINS + 2.0], axis=1).astype(np.float32)
    optimiser = SimpleNamespace(select=select)
    plan = SimpleNamespace(kind="classification", threshold="dev", metric="f1", positive=1, optimiser=optimiser)
    best, worse = (score_on_dev(plan, MARKS, outputs, None) for outputs in (ranked, noisy))
    assert score("f1", MARKS, ranked) == 0.0 < score("f1", MARKS, noisy) < worse.score < best.score == 1.0
    # A loss is that of the outputs as they are: it has no threshold.
    expected = [log_losses(MARKS, outputs).mean() if select == "loss" else None for outputs in (ranked, noisy)]
    assert [best.loss, worse.loss] == pytest.approx(expected)


RANDOM = np.random.default_rng(1)
LABELS = RANDOM.uniform(0, 5, 200).astype(np.float32)
NOISY = (LABELS + RANDOM.normal(0, 0.5, 200)).astype(np.float32)


def test_scores_in_the_labels_unit_pass() -> None:
    # A weak teacher's scores are drawn to the mean; a useless one's are all alike, or too wide.
    weak = 2.5 + 0.3 * (LABELS + RANDOM.normal(0, 1.5, 200) - 2.5)
    for scores in (NOISY, weak, np.full(200, 2.0), RANDOM.permutation(LABELS)):
        KINDS["regression"].check_answers(Path("mine"), LABELS, np.float32(scores)[:, None], ["score"])


@pytest.mark.parametrize("unit", [NOISY / 5, NOISY * 20, NOISY + 4, -NOISY])
def test_scores_in_another_unit_are_refused(unit: np.ndarray) -> None:
    with pytest.raises(PotstillError, match=r"mine: .*mean .*another unit.*mean 2\.\d"):
        KINDS["regression"].check_answers(Path("mine"), LABELS, unit[:, None], ["score"])


NAMES = ["bad", "fair", "good"]


def answered(share: float, labels: np.ndarray, order: np.ndarray, seed: int) -> np.ndarray:
    """Return outputs of a teacher that is right on a share of the rows, and names the classes in another order."""
    draw = np.random.default_rng(seed)
    right = draw.random(len(labels)) < share
    return np.eye(3, dtype=np.float32)[order[np.where(right, labels, draw.integers(0, 3, len(labels)))]]


@pytest.mark.parametrize("rows", [40, 200, 2000])
@pytest.mark.parametrize("seed", range(8))
def test_a_teacher_whose_classes_are_in_another_order_is_refused(rows: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    labels, kind = draw.choice(3, rows, p=[0.3, 0.45, 0.25]), KINDS["classification"]
    # However weak it is, a teacher in its own order passes, and one that always says the same.
    for share in (0.2, 0.6, 1.0):
        kind.check_answers("mine", labels, answered(share, labels, np.arange(3), seed), NAMES)
    kind.check_answers("mine", labels, np.tile(np.eye(3)[np.bincount(labels).argmax()], (rows, 1)), NAMES)
    with pytest.raises(PotstillError, match=r"^mine: .*if it says (bad for fair, fair|fair for bad, bad) for "):
        kind.check_answers("mine", labels, answered(0.9, labels, np.array([1, 0, 2]), seed), NAMES)
    marks = np.eye(3, dtype=np.uint8)[labels]
    several = 4 * answered(0.95, labels, np.array([1, 0, 2]), seed) - 2
    KINDS["multilabel"].check_answers("mine", marks, several[:, [1, 0, 2]], NAMES)
    with pytest.raises(PotstillError, match="Correct the order of its classes"):
        KINDS["multilabel"].check_answers("mine", marks, several, NAMES)


def test_a_teacher_that_is_worse_than_a_constant_is_refused() -> None:
    labels = np.repeat([0, 1], [170, 30])
    with pytest.raises(PotstillError, match=r"on 15\.0% of 200 rows, and one constant answer does on 85\.0%\. Give"):
        KINDS["classification"].check_answers("mine", labels, np.tile([0.0, 1.0], (200, 1)), NAMES[:2])
