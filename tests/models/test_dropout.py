"""Dropout drawn 16 bits at a time: torch's in all but the random numbers."""

import pytest
import torch
from torch import nn

from pipeline_lib.models.networks.layers import Dropout, dropout, replace_dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_share_of_zeros_and_the_scale(p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    values = torch.ones(401, 499, dtype=dtype)
    dropped = dropout(values, p, training=True)
    assert dropped.dtype == dtype
    zeros = float((dropped == 0).float().mean())
    # Five standard deviations of a binomial share.
    assert abs(zeros - p) < 5 * (p * (1 - p) / values.numel()) ** 0.5
    kept = dropped[dropped != 0].float().unique()
    assert kept.tolist() == pytest.approx([1 / (1 - p)], rel=0.01)


def test_neighbours_are_drawn_apart() -> None:
    torch.manual_seed(0)
    zero = dropout(torch.ones(100_000), 0.5, training=True) == 0
    # Four values come from one draw; none of them may say anything of the next three.
    for distance in (1, 2, 3, 4):
        both = float((zero[distance:] & zero[:-distance]).float().mean())
        assert abs(both - 0.25) < 0.01, distance


def test_gradients_pass_where_values_do() -> None:
    torch.manual_seed(0)
    values = torch.randn(7, 5, requires_grad=True)
    dropped = dropout(values, 0.3, training=True)
    dropped.sum().backward()
    assert torch.equal(values.grad == 0, dropped == 0)
    assert torch.allclose(values.grad * values.detach(), dropped.detach())


def test_the_mask_depends_on_the_seed_alone() -> None:
    def draw(threads: int) -> torch.Tensor:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        torch.manual_seed(3)
        drawn = dropout(torch.ones(100, 1000), 0.5, training=True)
        torch.set_num_threads(before)
        return drawn

    assert torch.equal(draw(1), draw(2))


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_nothing_and_everything(p: float) -> None:
    values = torch.randn(9)
    assert torch.equal(dropout(values, p, training=True), values * (1 - p))


def test_a_model_that_does_not_train_drops_nothing() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Dropout(0.5), nn.ReLU()))
    replace_dropout(model)
    assert type(model[1][0]) is Dropout and model[1][0].p == 0.5
    values = torch.randn(4, 3)
    model.eval()
    assert torch.equal(model(values), model(values))
    model.train()
    assert not torch.equal(model(values), model(values))
