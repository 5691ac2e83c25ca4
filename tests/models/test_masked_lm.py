"""What a masked language model expects in place of each word: what transformers computes itself."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models import masked_lm
from pipeline_lib.models.loadable import loading_faults
from pipeline_lib.models.masked_lm import MaskedLanguageModel, load_masked_lm
from pipeline_lib.params import check_params
from tests.kit.pretrained import write_model
from tests.params.variants import changed

HEAD = "AutoModelForMaskedLM"
WHOLE = ["a", "film", "good", "dull", "plot", "is", "not", "the"]
"""The whole words among the models' pieces, of which two more continue a word and one is a stop."""
SENTENCES = [
    # "plots" is two pieces, "lamp" none that is known, and "don" and "n't" no pieces of the text.
    "The film is not dull .",
    "plots is a lamp good film",
    "A plot",
    "do n't",
    "",
]


def split(text: str) -> masked_lm.SplitSentence:
    words = tuple(text.split())
    return words, (True,) * (len(words) - 1) + (False,) * bool(words)


@pytest.fixture(params=["bert", "roberta", "mpnet", "distilbert", "modernbert"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Write a random masked language model."""
    return write_model(tmp_path / "model", request.param, HEAD)


def expected(folder: Path, count: int, text: str) -> list[list[str] | None]:
    """Mask one word after the other and run transformers' own model on the text."""
    model = AutoModelForMaskedLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.convert_tokens_to_ids(WHOLE)
    words, predicted = text.split(), []
    for number, word in enumerate(words):
        if word.lower() not in WHOLE:
            predicted.append(None)
            continue
        masked = [*words[:number], tokenizer.mask_token, *words[number + 1 :]]
        inputs = tokenizer(" ".join(masked), return_tensors="pt")
        place = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.inference_mode():
            logits = model(**inputs).logits[0, place, ids]
        predicted.append([WHOLE[n] for n in logits.argsort(descending=True)[:count].tolist()])
    return predicted


def in_words(model: MaskedLanguageModel, predicted: np.ndarray) -> list[list[str] | None]:
    return [None if row[0] < 0 else [model.words[number] for number in row] for row in predicted.tolist()]


@pytest.mark.parametrize("batch_tokens", [1, 30, 10_000])
def test_predictions_are_those_of_transformers(folder: Path, batch_tokens: int) -> None:
    model = load_masked_lm(folder, "cpu", "float32", 3)
    assert model.words == WHOLE
    sentences = [split(text) for text in SENTENCES]
    predicted, tokens = model.predict_words(sentences, 32, batch_tokens)
    wanted = [row for text in SENTENCES for row in expected(folder, 3, text)]
    assert in_words(model, predicted) == wanted
    assert sum(row is not None for row in wanted) == 11
    # Each sentence, two special tokens included, once for each such word.
    assert tokens == 5 * 8 + 4 * 9 + 2 * 4


def test_no_sentence_moves_anothers_predictions(tmp_path: Path) -> None:
    model = load_masked_lm(write_model(tmp_path, "bert", HEAD), "cpu", "float32", 8)
    generator = np.random.default_rng(0)
    sizes = generator.integers(1, 12, 60)
    sentences = [split(" ".join(generator.choice(WHOLE, size))) for size in sizes]
    places = np.split(np.arange(sizes.sum()), np.cumsum(sizes)[:-1])

    whole, _ = model.predict_words(sentences, 32, 64)
    for part in (range(30), range(30, 60), range(7, 8)):
        alone, _ = model.predict_words([sentences[n] for n in part], 32, 64)
        assert np.array_equal(alone, whole[np.concatenate([places[n] for n in part])])


def test_parts_and_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_masked_lm(write_model(tmp_path, "bert", HEAD), "cpu", "bfloat16", 1000)
    [row, _], _ = model.predict_words([split("good film")], 32, 64)
    assert sorted(row.tolist()) == [*range(len(WHOLE))]
    # Words that are not read have no prediction.
    model = load_masked_lm(write_model(tmp_path, "bert", HEAD), "cpu", "float32", 3)
    predicted, tokens = model.predict_words([split("the film is good")], 4, 64)
    # Two words beside [CLS] and [SEP].
    assert (predicted[:, 0] >= 0).tolist() == [True, True, False, False] and tokens == 2 * 4
    # Numbers that are not finite are refused.
    model = load_masked_lm(write_model(tmp_path, "bert", HEAD), "cpu", "float32", 3)
    model.model.cls.predictions.bias.data[3] = float("nan")
    with pytest.raises(PotstillError, match="not finite"):
        model.predict_words([split("good film")], 32, 64)
    # Memory is bounded by parts.
    model = load_masked_lm(write_model(tmp_path, "bert", HEAD), "cpu", "float32", 3)
    sentences = [split(text) for text in SENTENCES]
    whole, tokens = model.predict_words(sentences, 32, 64)
    monkeypatch.setattr(masked_lm, "MASKED_TOKENS", 20)
    parts, counted = model.predict_words(sentences, 32, 64)
    assert np.array_equal(parts, whole) and counted == tokens


def test_models_that_lack_something_are_refused(tmp_path: Path) -> None:
    write_model(tmp_path / "model", "bert")
    rule = {"p": 0.4, "candidates": 15, "model": "minilm", "max_length": 16}
    path = {"kind": "path", "path": "model"}
    params = check_params(changed({"inputs": str(tmp_path), "models.minilm": path, "transfer.full.substitution": rule}))
    fault = loading_faults(params)[0]
    assert fault.startswith("params.yaml: models.minilm: ")
    assert "['BertModel']: a model without the head that predicts masked words" in fault
    assert "set it and `max_length` to null" in fault
    # A tokenizer without a mask is refused.
    write_model(tmp_path, "bert", HEAD)
    path = tmp_path / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({key: settings[key] for key in settings if key != "mask_token"}))
    with pytest.raises(PotstillError, match="no mask token"):
        load_masked_lm(tmp_path, "cpu", "float32", 3)
