"""The bi-attentive student against its equations, row by row and word by word."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pipeline_lib.base.devices import runs_lstm_in_bfloat16
from pipeline_lib.models.networks.biattentive import BiAttentiveReader
from pipeline_lib.models.networks.layers import BiLSTM
from pipeline_lib.params import StudentSettings, student_settings
from pipeline_lib.training.loop import autocast

WORDS = 11
VALUES = {
    **{"architecture": "biattentive", "tokens": "words", "model": None, "embedding_size": None},
    **{"feedforward": 6, "hidden": 5, "pools": ["max", "mean", "self"], "shared": 7},
    **{"classifier": 4, "dropout": 0.0, "max_words": 9},
}


def settings(**changes: Any) -> StudentSettings:
    return student_settings(VALUES | changes)


def make_reader(**changes: Any) -> BiAttentiveReader:
    torch.manual_seed(5)
    return BiAttentiveReader(WORDS, 3, settings(**changes)).eval()


def one_lstm(net: nn.LSTM, words: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return a plain LSTM's state after each word, by its gates (torch's order: i, f, g, o)."""
    state = cell = torch.zeros(net.hidden_size)
    states = []
    for word in words:
        gates = net.weight_ih_l0 @ word + net.bias_ih_l0 + net.weight_hh_l0 @ state
        i, f, g, o = (gates + net.bias_hh_l0).chunk(4)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        state = o.sigmoid() * cell.tanh()
        states.append(state)
    return states


def both_lstms(layer: BiLSTM, words: list[torch.Tensor]) -> list[torch.Tensor]:
    ahead, back = one_lstm(layer.ahead, words), one_lstm(layer.back, words[::-1])[::-1]
    return [torch.cat(pair) for pair in zip(ahead, back, strict=True)]


def shares(scores: list[torch.Tensor]) -> list[torch.Tensor]:
    total = sum(score.exp() for score in scores)
    return [score.exp() / total for score in scores]


def contexts(own: list[torch.Tensor], other: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return for each word of one sentence the other's words, weighted (equations 4.7, 4.8)."""
    found = []
    for word in own:
        weights = shares([word @ candidate for candidate in other])
        found.append(sum(w * v for w, v in zip(weights, other, strict=True)))
    return found


def pools(reader: BiAttentiveReader, states: list[torch.Tensor], side: int) -> dict[str, torch.Tensor]:
    """Return every pool of one side by name (equations 4.10 to 4.12)."""
    found = {"max": torch.stack(states).amax(0), "min": torch.stack(states).amin(0), "mean": sum(states) / len(states)}
    if "self" in reader.pools:
        weights = shares([reader.scores[side].weight[0] @ state for state in states])
        found["self"] = sum(w * s for w, s in zip(weights, states, strict=True))
    return found


def slowly(reader: BiAttentiveReader, first: list[int], second: list[int]) -> torch.Tensor:
    table = reader.embeddings.trained.weight
    x, y = (
        both_lstms(reader.first, [reader.feedforward(table[number]).relu() for number in sentence])
        for sentence in (first, second)
    )
    found = []
    for side, (own, other) in enumerate(((x, y), (y, x))):
        compared = [
            torch.cat([word, word - context, word * context])
            for word, context in zip(own, contexts(own, other), strict=True)
        ]
        by_name = pools(reader, both_lstms(reader.second, compared), side)
        found += [by_name[name] for name in reader.pools]
    return reader.shared(torch.cat(found)).relu()


def padded(rows: list[list[int]], extra: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    columns = max(map(len, rows)) + extra
    # What stands in the padding must not matter: any word will do.
    ids = torch.tensor([row + [3] * (columns - len(row)) for row in rows])
    return ids, torch.tensor([len(row) for row in rows])


def random_rows(seed: int, count: int = 12, longest: int = 6) -> list[list[int]]:
    draw = np.random.default_rng(seed)
    lengths = [1, longest, *draw.integers(1, longest + 1, count - 2).tolist()]
    return [draw.integers(1, WORDS, length).tolist() for length in lengths]


@pytest.mark.parametrize("names", [["max", "mean", "self"], ["self"], ["min", "mean"], ["max", "mean", "self", "min"]])
def test_pairs_by_the_equations(names: list[str]) -> None:
    reader = make_reader(pools=names)
    # Length 1 meets length 1, and both meet longer ones; the second sentences are the longer batch.
    first, second = random_rows(1), [[2], *random_rows(2, 10, 8), [4]]
    second = [second[0], *second[2:], second[1]][: len(first)]
    found = reader(*padded(first), *padded(second))["vector"]
    expected = torch.stack([slowly(reader, *pair) for pair in zip(first, second, strict=True)])
    assert {len(a) == len(b) for a, b in zip(first, second, strict=True)} == {True, False}
    assert torch.allclose(found, expected, atol=1e-5)
    assert expected.std(0).max() > 1e-3


def test_sides_and_settings() -> None:
    reader = make_reader()
    rows = random_rows(3)
    found = reader(*padded(rows))["vector"]
    expected = torch.stack([slowly(reader, row, row) for row in rows])
    assert torch.allclose(found, expected, atol=1e-5)
    assert torch.allclose(found, reader(*padded(rows), *padded(rows))["vector"], atol=1e-6)
    # The two sides have weights of their own.
    reader = make_reader(pools=["self"])
    first, second = random_rows(1), random_rows(2)
    found = reader(*padded(first), *padded(second))["vector"]
    swapped = reader(*padded(second), *padded(first))["vector"]
    assert not torch.allclose(found, swapped, atol=1e-4)
    # Settings that do not go together are refused.
    with pytest.raises(ValueError, match="goes with `tokens: pieces`"):
        settings(tokens="pieces")
    with pytest.raises(ValueError, match="goes with `tokens: pieces`"):
        settings(embedding_size=8)
    with pytest.raises(ValueError, match="`pools`: each may appear only once"):
        settings(pools=["max", "max"])
    assert settings(tokens="pieces", model="bert", embedding_size=8).reads == "pieces"


@pytest.mark.parametrize("pair", [True, False])
def test_gradients_are_finite_and_reach_every_weight(pair: bool) -> None:
    reader = make_reader(pools=["max", "min", "mean", "self"]).train()
    inputs = [*padded(random_rows(1), 2), *(padded(random_rows(2)) if pair else ())]
    reader(*inputs)["vector"].pow(2).sum().backward()
    for name, parameter in reader.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.skipif(not runs_lstm_in_bfloat16("cpu"), reason="no bfloat16 units")
def test_gradients_in_bfloat16_are_near_those_in_float32() -> None:
    inputs = [*padded(random_rows(1), 2), *padded(random_rows(2))]
    gradients = {}
    for precision in ("float32", "bfloat16"):
        reader = make_reader(pools=["max", "mean", "self", "min"], hidden=8)
        with autocast(torch.device("cpu"), precision):
            found = reader(*inputs)["vector"]
        found.float().pow(2).sum().backward()
        gradients[precision] = {n: p.grad for n, p in reader.named_parameters()}
    for name, exact in gradients["float32"].items():
        difference = gradients["bfloat16"][name] - exact
        assert difference.norm() < 0.1 * exact.norm(), name
