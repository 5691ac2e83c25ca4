"""No unit of a regression's labels decides how well teacher and students learn them."""

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.training.dev_scores import LabelScale, scale_of

LABELS = np.random.default_rng(0).integers(-64, 65, 50).astype(np.float32) / 64


def test_a_change_of_unit_leaves_the_standard_labels_alone() -> None:
    # Powers of two are exact: the same numbers to the last bit.
    in_quarters = LABELS * 4 + 8
    assert np.array_equal(
        LabelScale.of(in_quarters).standardise(in_quarters), LabelScale.of(LABELS).standardise(LABELS)
    )
    percent = ((LABELS + 1) * 50).astype(np.float32)
    assert LabelScale.of(percent).standardise(percent) == pytest.approx(
        LabelScale.of(LABELS).standardise(LABELS), abs=1e-5
    )


@pytest.mark.parametrize("bias", [True, False])
def test_a_rescaled_layer_answers_in_the_labels_unit(bias: bool) -> None:
    layer = torch.nn.Linear(3, 1, bias=bias)
    x = torch.randn(5, 3)
    standard = layer(x).detach().numpy()
    scale = LabelScale(mean=2.5, deviation=40.0)
    scale.rescale(layer)
    assert layer(x).detach().numpy() == pytest.approx(standard * 40.0 + 2.5, rel=1e-5)


def test_class_numbers_have_no_scale() -> None:
    assert scale_of(np.array([0, 1, 1])) is None
    assert scale_of(LABELS) == LabelScale.of(LABELS)


def test_labels_that_are_all_the_same_are_refused() -> None:
    with pytest.raises(PotstillError, match="all 4 training labels are 3"):
        LabelScale.of(np.full(4, 3.0, np.float32))


def test_the_inverse_undoes_a_rescaling() -> None:
    layer, scale = torch.nn.Linear(3, 1), LabelScale.of(LABELS * 10 + 40)
    x = torch.randn(5, 3)
    before = layer(x)
    scale.rescale(layer)
    assert not torch.allclose(layer(x), before, atol=1.0)
    scale.inverse.rescale(layer)
    torch.testing.assert_close(layer(x), before, rtol=1e-5, atol=1e-5)
