from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, DistilBertConfig, ModernBertConfig
from transformers import DistilBertForSequenceClassification as DistilBert
from transformers import ModernBertForSequenceClassification as ModernBert

from pipeline_lib.models.networks import attention
from pipeline_lib.models.networks.attention import LONGEST, use_short_attention
from pipeline_lib.models.networks.dropout import Dropout, dropout, replace_dropout


def _bert() -> BertForSequenceClassification:
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=128, initializer_range=0.5,
    )  # fmt: skip
    return BertForSequenceClassification(config).eval()


def _distilbert() -> DistilBert:
    torch.manual_seed(1)
    config = DistilBertConfig(vocab_size=50, dim=32, n_layers=2, n_heads=4, hidden_dim=64, initializer_range=0.5)
    return DistilBert(config).eval()


def _batch(tokens: int, padded: bool) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    mask = torch.ones(5, tokens, dtype=torch.int64)
    if padded:
        mask[0, tokens // 2 :] = 0
        mask[3, 1:] = 0
    ids = torch.randint(1, 50, (5, tokens), generator=generator) * mask
    return {"input_ids": ids, "attention_mask": mask}


def _counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    usual = attention.sdpa_attention_forward

    def counted(*arguments: object, **named: object) -> object:
        calls.append(1)
        return usual(*arguments, **named)

    monkeypatch.setattr(attention, "sdpa_attention_forward", counted)
    return calls


def test_numbers_stay_finite_and_near() -> None:
    config = ModernBertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=64, local_attention=4, global_attn_every_n_layers=2, pad_token_id=0,
        initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(1)
    model, batch = ModernBert(config).eval(), _batch(13, padded=True)
    with torch.inference_mode():
        expected = model(**batch).logits
        use_short_attention(model)
        found = model(**batch).logits
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # Bfloat16 stays as near to float32 as the usual attention.
    batch = _batch(13, padded=True)
    with torch.inference_mode():
        exact = _bert()(**batch).logits
        usual = _bert().to(torch.bfloat16)(**batch).logits.float()
        model = _bert().to(torch.bfloat16)
        use_short_attention(model)
        short = model(**batch).logits
    assert short.dtype == torch.bfloat16
    assert (short.float() - exact).abs().max() < 2 * (usual - exact).abs().max() + 1e-3


@pytest.mark.parametrize("build", [_bert, _distilbert])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("tokens", [2, 13, LONGEST])
def test_gives_what_the_usual_attention_gives(
    build: Callable[[], Any], padded: bool, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch = build(), _batch(tokens, padded)
    with torch.inference_mode():
        usual = model(**batch).logits
        calls = _counting(monkeypatch)
        use_short_attention(model)
        short = model(**batch).logits
    assert not calls
    np.testing.assert_allclose(short, usual, rtol=1e-4, atol=1e-5)
    assert usual.std() > 0.01


def test_longer_sentences_and_training_take_the_usual_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _counting(monkeypatch)
    model = _bert()
    use_short_attention(model)
    with torch.inference_mode():
        model(**_batch(LONGEST + 1, padded=False))
    assert len(calls) == 2
    model.train()
    model(**_batch(8, padded=False)).logits.sum().backward()
    assert len(calls) == 4
    assert all(p.grad is not None for p in model.bert.encoder.parameters())
    # A model that asks for another attention keeps it.
    model = _bert()
    model.set_attn_implementation("eager")
    use_short_attention(model)
    assert model.config._attn_implementation == "eager"


@pytest.mark.parametrize("padded", [False, True])
def test_attention_in_training_is_the_eager_one(padded: bool) -> None:
    def gradients(implementation: str) -> tuple[torch.Tensor, list[torch.Tensor]]:
        model = _bert()
        model.set_attn_implementation(implementation)
        logits = model(**_batch(9, padded)).logits
        logits.square().sum().backward()
        return logits, [p.grad for p in model.parameters() if p.grad is not None]

    eager, plain = gradients("eager"), gradients(attention.NAME_IN_TRAINING)
    assert torch.allclose(eager[0], plain[0], atol=1e-6)
    assert len(eager[1]) == len(plain[1]) > 20
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(eager[1], plain[1], strict=True))


def test_attention_in_training_drops_weights() -> None:
    model = _bert()
    model.set_attn_implementation(attention.NAME_IN_TRAINING)
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    batch = _batch(9, padded=False)
    sure = [m for m in model.modules() if hasattr(m, "attention_head_size")]
    assert len(sure) == 2
    first, second = (model(**batch).logits for _ in range(2))
    # BERT hands its dropout module's rate on; with all of them at 0 nothing is random.
    assert torch.equal(first, second)
    for module in sure:
        module.dropout.p = 0.5
    first, second = (model(**batch).logits for _ in range(2))
    assert not torch.equal(first, second)


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


def test_drawn_apart_by_the_seed() -> None:
    torch.manual_seed(0)
    zero = dropout(torch.ones(100_000), 0.5, training=True) == 0
    # Four values come from one draw; none of them may say anything of the next three.
    for distance in (1, 2, 3, 4):
        both = float((zero[distance:] & zero[:-distance]).float().mean())
        assert abs(both - 0.25) < 0.01, distance
    # Gradients pass where values do.
    torch.manual_seed(0)
    values = torch.randn(7, 5, requires_grad=True)
    dropped = dropout(values, 0.3, training=True)
    dropped.sum().backward()
    assert torch.equal(values.grad == 0, dropped == 0)
    assert torch.allclose(values.grad * values.detach(), dropped.detach())

    # The mask depends on the seed alone.
    def draw(threads: int) -> torch.Tensor:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        torch.manual_seed(3)
        drawn = dropout(torch.ones(100, 1000), 0.5, training=True)
        torch.set_num_threads(before)
        return drawn

    assert torch.equal(draw(1), draw(2))
    # A model that does not train drops nothing.
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Dropout(0.5), nn.ReLU()))
    replace_dropout(model)
    assert type(model[1][0]) is Dropout and model[1][0].p == 0.5
    values = torch.randn(4, 3)
    model.eval()
    assert torch.equal(model(values), model(values))
    model.train()
    assert not torch.equal(model(values), model(values))


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_nothing_and_everything(p: float) -> None:
    values = torch.randn(9)
    assert torch.equal(dropout(values, p, training=True), values * (1 - p))
