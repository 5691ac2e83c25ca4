"""Packed batches: a model's answers are those that it gives padded ones."""

from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline_lib.models.networks import attention, packing
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.models.teacher import Teacher, length_sorted_batches, load_classifier
from pipeline_lib.models.vector_model import VectorModel, load_vector_model
from tests.kit.pretrained import write_model

PACKED = ("bert", "mpnet", "roberta", "xlm-roberta", "distilbert", "electra", "albert")
WORDS = ["a", "film", "good", "dull", "plot", "is", "not", "the"]
TEXTS = [" ".join(WORDS[i % 8] for i in range(start, start + 1 + start % 9)) for start in range(40)]
PAIRS = [*zip(TEXTS[:20], TEXTS[20:], strict=True)]


def padded(model: Teacher | VectorModel, texts: list, tokens: int) -> np.ndarray:
    model.packs = False
    outputs = model.predict(texts, 24, tokens)
    model.packs = True
    return outputs


@pytest.mark.parametrize("family", PACKED)
@pytest.mark.parametrize("longest", [attention.LONGEST, 4])
def test_answers_are_those_of_padded_batches(
    family: str, longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "LONGEST", longest)
    write_model(tmp_path / "encoder", family)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        classifier, tokenizer = load_classifier(tmp_path / "encoder", ["no", "yes"])
        pooled, _ = load_classifier(tmp_path / "encoder", ["no", "yes"], pooled=True)
    for folder, model in {"classifier": classifier, "pooled": pooled}.items():
        for part in (model, tokenizer):
            part.save_pretrained(tmp_path / folder)
    for model in (
        load_teacher(tmp_path / "classifier", "cpu", "float32"),
        load_teacher(tmp_path / "pooled", "cpu", "float32"),
        load_vector_model(tmp_path / "encoder", "cpu", "float32", "mean"),
        load_vector_model(tmp_path / "encoder", "cpu", "float32", "cls"),
    ):
        assert model.packs
        for texts in (TEXTS, PAIRS):
            for tokens in (30, 10_000):
                answers = model.predict(texts, 24, tokens)
                assert answers.std() > 1e-4
                np.testing.assert_allclose(answers, padded(model, texts, tokens), atol=2e-6)


def test_tokens_alone_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_vector_model(write_model(tmp_path, "bert"), "cpu", "float32", "mean")
    shapes: list[tuple[int, ...]] = []
    layer = model.model.encoder.layer[0]
    layer.register_forward_pre_hook(lambda _, args: shapes.append(tuple(args[0].shape)))
    sentences = model.encode(TEXTS, 24)
    model.answer(sentences, 10_000)
    assert shapes == [(1, len(sentences.ids), 16)]
    # Nothing is packed outside the block.
    model = load_vector_model(write_model(tmp_path, "bert"), "cpu", "float32", "mean")
    batch = model.encode(["a film", "a"], 24).batch(np.arange(2))
    with packing.packed(batch):
        assert packing.CURRENT.get().runs == [(1, 4), (1, 3)]
        assert packing.CURRENT.get().indices.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert packing.CURRENT.get() is None
    # Batches hold as many tokens as fit.
    lengths = np.array([3, 9, 5, 5, 1, 20])
    batches = [rows.tolist() for rows in length_sorted_batches(lengths, 14, padded=False)]
    assert batches == [[5], [1, 2], [3, 0, 4]]
    batches = [rows.tolist() for rows in length_sorted_batches(lengths, 14)]
    assert batches == [[5], [1], [2, 3], [0, 4]]


@pytest.mark.parametrize("family", ["modernbert", "deberta-v2"])
def test_a_model_that_needs_padding_gets_it(family: str, tmp_path: Path) -> None:
    model = load_vector_model(write_model(tmp_path, family), "cpu", "float32", "mean")
    assert not model.packs
    alone = np.concatenate([model.predict([text], 24, 64) for text in TEXTS])
    np.testing.assert_allclose(model.predict(TEXTS, 24, 10_000), alone, atol=2e-6)
