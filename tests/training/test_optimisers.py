"""Optimisers: what decays, and the learning rate of each step."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from pipeline_lib.shards.training_records import Settings
from pipeline_lib.training.optimisers import make_optimiser, parameter_groups, rate_factor
from pipeline_lib.training.teachers.refining import SharedClassifiers
from tests.kit.made_up import made_up_training

SIZES = {"num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 8, "pad_token_id": 0}
SIZES |= {"hidden_size": 4, "intermediate_size": 6}
FAMILIES = ("bert", "roberta", "albert", "mpnet", "distilbert", "electra", "deberta", "deberta-v2")


def classifier(family: str) -> Any:
    sizes = SIZES | {"dim": 4, "hidden_dim": 6, "n_layers": 1, "n_heads": 2, "embedding_size": 4}
    sizes |= {"relative_attention": True, "pos_att_type": ["c2p"], "norm_rel_ebd": "layer_norm"}
    return AutoModelForSequenceClassification.from_config(AutoConfig.for_model(family, **sizes))


def settings(**changes: Any) -> Settings:
    return Settings(**made_up_training()["settings"] | {"weight_decay": 0.01} | changes)


def decaying(model: torch.nn.Module) -> set[str]:
    """Return the names of the parameters that decay, after checking that each trained one counts.

    Each that is trained has to be in one of the groups, once.
    """
    first, second = parameter_groups(model, 0.01)
    assert (first["weight_decay"], second["weight_decay"]) == (0.01, 0.0)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    each = [names[id(parameter)] for parameter in first["params"] + second["params"]]
    assert sorted(each) == sorted(n for n, p in model.named_parameters() if p.requires_grad)
    return {names[id(parameter)] for parameter in first["params"]}


@pytest.mark.parametrize("family", FAMILIES)
def test_in_every_family_what_decays_is_its_matrices(family: str) -> None:
    model = classifier(family)
    matrices = {name for name, parameter in model.named_parameters() if parameter.dim() == 2}
    matrices -= {"mpnet.encoder.relative_attention_bias.weight"}
    assert decaying(model) == matrices and len(matrices) > 6
    frozen = model.get_input_embeddings().requires_grad_(False).weight
    assert decaying(model) == {name for name in matrices if model.get_parameter(name) is not frozen}


@pytest.mark.parametrize("total", [1, 2, 10, 97])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.5, 0.95])
@pytest.mark.parametrize("schedule", ["constant", "linear"])
def test_rates(schedule: str, warmup: float, total: int) -> None:
    factors = [rate_factor(schedule, warmup, step, total) for step in range(total)]
    assert all(0 < factor <= 1 for factor in factors)
    peak = math.ceil(warmup * total)
    rising, rest = factors[:peak], factors[peak:]
    assert rising == sorted(rising) and len(set(rising)) == len(rising)
    if schedule == "constant":
        assert set(rest) <= {1.0}
    else:
        assert rest == sorted(rest, reverse=True)
        steps = np.diff(rest)
        assert np.allclose(steps, -1 / max(1.0, total - warmup * total))


def test_rates_by_hand() -> None:
    linear = [rate_factor("linear", 0.0, step, 4) for step in range(4)]
    assert linear == [1.0, 0.75, 0.5, 0.25]
    warm = [rate_factor("linear", 0.5, step, 4) for step in range(4)]
    assert warm == pytest.approx([1 / 3, 2 / 3, 1.0, 0.5])
    # A step without a gradient shrinks what decays.
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.LayerNorm(3))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimiser = make_optimiser(model, settings(learning_rate=0.5))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    after = model.state_dict()
    # AdamW multiplies by 1 − rate · decay before its step, which is 0 here.
    torch.testing.assert_close(after["0.weight"], before["0.weight"] * (1 - 0.5 * 0.01))
    for name in ("0.bias", "1.weight", "1.bias"):
        assert torch.equal(after[name], before[name])
    model = torch.nn.Linear(2, 2)
    adadelta = make_optimiser(model, settings(optimiser="adadelta", learning_rate=1.0))
    assert isinstance(adadelta, torch.optim.Adadelta)
    assert adadelta.defaults["rho"] == 0.95 and adadelta.defaults["lr"] == 1.0
    adam = make_optimiser(model, settings())
    assert isinstance(adam, torch.optim.AdamW)
    for optimiser in (adadelta, adam):
        assert [group["weight_decay"] for group in optimiser.param_groups] == [0.01, 0.0]
    # The encoder of several tasks decays once.
    expected = {name.replace("bert.", "", 1) for name in decaying(classifier("bert"))} - {"classifier.weight"}
    shared = {f"encoder.{name}" for name in expected} | {f"heads.{number}.classifier.weight" for number in (0, 1)}
    assert decaying(SharedClassifiers(classifier("bert") for _ in range(2))) == shared
