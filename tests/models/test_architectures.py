"""A teacher's folder is read as transformers reads it: each architecture's texts and pairs."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.models.teacher import load_classifier
from tests.kit.hub_folders import change_json, write_classifier

FAMILIES = ["albert", "bert", "deberta-v2", "distilbert", "gpt2", "modernbert", "roberta"]
FAMILIES += ["xlm-roberta"]
TEXTS = ["the lamp is bright", "a film", "", "the plot is not short and the film is not long"]
PAIRS = [("the lamp is bright", "the lamp shines a lot"), ("a film", "good"), ("", "dull plot")]


def transformers_logits(folder: Path, texts: list) -> np.ndarray:
    """Return each text's logits, as transformers computes them from its own tokenizer's call."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    has_segments = (getattr(model.config, "type_vocab_size", None) or 0) > 1
    rows = []
    for text in texts:
        arguments = text if isinstance(text, tuple) else (text,)
        encoded = tokenizer(*arguments, return_tensors="pt", return_token_type_ids=has_segments, truncation=True)
        with torch.no_grad():
            rows.append(model(**encoded).logits[0].numpy())
    return np.stack(rows)


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_transformers(tmp_path: Path, family: str) -> None:
    folder = write_classifier(tmp_path / family, family)
    teacher = load_teacher(folder, "cpu", "float32")
    for texts in (TEXTS, PAIRS):
        # GPT-2's tokenizer makes nothing of an empty text.
        texts = [text for text in texts if family != "gpt2" or text]
        expected = transformers_logits(folder, texts)
        assert np.abs(expected).max() > 0.05
        np.testing.assert_allclose(teacher.predict(texts, 64, 4096), expected, atol=1e-4)
    assert np.isfinite(teacher.predict(["", "a film"], 64, 4096)).all()
    assert np.isfinite(teacher.predict([("", ""), ("a film", "")], 64, 4096)).all()


@pytest.mark.parametrize("tokenizer_pads", [True, False])
@pytest.mark.parametrize("model_pads", [True, False])
def test_padding_of_a_decoder(tmp_path: Path, tokenizer_pads: bool, model_pads: bool) -> None:
    folder = write_classifier(tmp_path / "gpt2", "gpt2")
    texts = [text for text in TEXTS if text]
    expected = transformers_logits(folder, texts)
    number = AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids("<pad>")
    if tokenizer_pads:
        change_json(folder / "tokenizer_config.json", pad_token="<pad>")
    if model_pads:
        change_json(folder / "config.json", pad_token_id=number)
    teacher = load_teacher(folder, "cpu", "float32")
    np.testing.assert_allclose(teacher.predict(texts, 64, 4096), expected, atol=1e-4)
    padded = tokenizer_pads or model_pads
    assert teacher.pieces.padding == ("<pad>" if padded else "<|endoftext|>")
    assert teacher.model.config.pad_token_id == teacher.pieces.pad_id


def test_padding_that_would_be_read_is_refused(tmp_path: Path) -> None:
    folder = write_classifier(tmp_path / "gpt2", "gpt2")
    change_json(folder / "config.json", pad_token_id=0)
    change_json(folder / "tokenizer_config.json", pad_token="<pad>")
    message = r"gpt2: its tokenizer pads with '<pad>', \d+, and pad_token_id in config.json is 0"
    with pytest.raises(PotstillError, match=message):
        load_teacher(folder, "cpu", "float32")
    change_json(folder / "config.json", pad_token_id=...)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    with pytest.raises(PotstillError, match=r"no padding token.*pad_token in tokenizer_config"):
        load_teacher(folder, "cpu", "float32")
    # A tokenizer of sentencepiece alone names the package.
    folder = write_classifier(tmp_path / "albert", "albert")
    (folder / "tokenizer.json").unlink()
    (folder / "spiece.model").write_bytes(b"pieces")
    message = r"spiece.model cannot be read without a tokenizer.json .*pip install sentencepiece"
    with pytest.raises(PotstillError, match=message):
        load_classifier(folder)
    # Architectures that read padding are refused.
    folder = write_classifier(tmp_path / "bert", "bert")
    sizes = {"vocab_size": 20, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}
    names = {"id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}}
    model = AutoModelForSequenceClassification.from_config(
        AutoConfig.for_model("xlnet", pad_token_id=0, **sizes, **names)
    )
    model.save_pretrained(folder)
    with pytest.raises(PotstillError, match=r"of a xlnet model change with the padding"):
        load_classifier(folder)


def test_code_and_segments(tmp_path: Path) -> None:
    folder = write_classifier(tmp_path / "bert", "bert")
    expected = load_teacher(folder, "cpu", "float32").predict(TEXTS, 64, 4096)
    (folder / "modeling_mine.py").write_text("raise AssertionError")
    named = {"AutoModelForSequenceClassification": "modeling_mine.Mine"}
    change_json(folder / "config.json", auto_map=named | {"AutoConfig": "modeling_mine.Config"})
    tokenizer = {"AutoTokenizer": ["modeling_mine.Tokenizer", None]}
    change_json(folder / "tokenizer_config.json", auto_map=tokenizer)
    assert np.array_equal(load_teacher(folder, "cpu", "float32").predict(TEXTS, 64, 4096), expected)
    # A tokenizer that says that there are no segments is heeded.
    folder = write_classifier(tmp_path / "bert", "bert")
    teacher = load_teacher(folder, "cpu", "float32")
    assert teacher.pieces.segments
    change_json(folder / "tokenizer_config.json", model_input_names=["input_ids"])
    other = load_teacher(folder, "cpu", "float32")
    assert not other.pieces.segments
    assert not np.allclose(*(model.predict(PAIRS, 64, 4096) for model in (teacher, other)))
