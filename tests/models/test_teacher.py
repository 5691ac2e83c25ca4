"""A teacher of any family: its positions, tokens, number format and digest."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file, save_file

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.model_config import is_classifier
from pipeline_lib.exports.contents import Content, content_of
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.models.pooled import HEAD
from pipeline_lib.models.teacher import digest_model, keep_head_exact, load_classifier
from pipeline_lib.models.vector_model import load_vector_model
from pipeline_lib.outputs.teacher_pass import StateTeacher
from pipeline_lib.shards.columns import KEPT, MASKED
from pipeline_lib.training.teachers.finetuning import output_layer
from tests.kit.pretrained import FAMILIES, write_model
from tests.pipeline.corpus import sentences, write_encoder


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    write_encoder(folder, labels=2)
    return folder


def test_loading_makes_up_nothing(classifier: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    teacher = load_teacher(classifier, "cpu", "float32")
    encoder = load_vector_model(classifier, "cpu", "float32", "mean")
    long = "film " * 100
    for model in (teacher, encoder):
        assert model.predict([long], 64, 256).shape[0] == 1
        with pytest.raises(PotstillError, match="max_length: 65, but the model has 64 pos"):
            model.predict([long], 65, 256)

    # Loading looks up nothing and leaves the environment alone.
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    load_teacher(classifier, "cpu", "float32")
    with pytest.raises(PotstillError, match="no model that can be loaded"):
        load_teacher(Path("nobody/nothing"), "cpu", "float32")
    assert "HF_HUB_OFFLINE" not in os.environ
    # A classifier of other labels gets a new head.
    write_encoder(tmp_path, labels=3)
    own, _ = load_classifier(tmp_path)
    kept, _ = load_classifier(tmp_path, ["a", "b", "c"])
    new, _ = load_classifier(tmp_path, ["no", "yes"])
    assert torch.equal(kept.classifier.weight, own.classifier.weight)
    assert new.classifier.weight.shape[0] == 2 and new.config.id2label == {0: "no", 1: "yes"}
    for name, weight in own.base_model.state_dict().items():
        assert torch.equal(new.base_model.state_dict()[name], weight)


MASKED_ROWS = [
    ("The [MASK] isn't [MASK].", [("The", KEPT), ("[MASK]", MASKED), ("is", KEPT), ("n't", KEPT),
                                  ("[MASK]", MASKED), (".", KEPT)]),
    ("[MASK] [MASK]", [("[MASK]", KEPT), ("[MASK]", MASKED)]),
    ("A  film", [("A", KEPT), ("film", KEPT)]),
]  # fmt: skip


def masked_rows() -> pa.Table:
    """Return rows of a transfer set; the second one's own text is about masks."""
    texts, pairs = zip(*MASKED_ROWS, strict=True)
    words = [[word for word, _ in row] for row in pairs]
    rules = pa.array([[rule for _, rule in row] for row in pairs], pa.list_(pa.int8()))
    keys = pa.array(range(len(texts)), pa.uint64())
    return pa.table({"key": keys, "text": texts, "words": words, "rules": rules})


def test_masked_words_are_the_teachers_own_mask(tmp_path: Path) -> None:
    write_encoder(tmp_path, labels=2, mask="<mask>")
    for teacher in (load_teacher(tmp_path, "cpu", "float32"), load_vector_model(tmp_path, "cpu", "float32", "cls")):
        texts = teacher.texts(masked_rows())
        assert texts == ["The <mask> isn't <mask>.", "[MASK] <mask>", "A  film"]
        encoded = teacher.encode(texts, 32)
        number = teacher.tokenizer.mask_token_id
        counts = [int((ids == number).sum()) for ids in _rows(encoded.ids, encoded.lengths)]
        assert counts == [2, 1, 0]
        # A slice of a shard, as the proof takes it, is read alike.
        assert teacher.texts(masked_rows().slice(1)) == texts[1:]
        assert teacher.texts(masked_rows().take([2, 0])) == [texts[2], texts[0]]


def _rows(ids: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    return np.split(ids, np.cumsum(lengths)[:-1])


def test_masks_are_the_teachers(classifier: Path, tmp_path: Path) -> None:
    teacher = load_teacher(classifier, "cpu", "float32")
    assert teacher.texts(masked_rows()) == [text for text, _ in MASKED_ROWS]
    assert teacher.texts(pa.table({"text": ["a [MASK]"]})) == ["a [MASK]"]
    pairs = pa.table({"text": ["a"], "text_2": ["b"]})
    assert teacher.texts(pairs) == [("a", "b")]
    # A tokenizer without a mask reads an unknown word.
    write_encoder(tmp_path, labels=2, mask=None)
    teacher = load_teacher(tmp_path, "cpu", "float32")
    assert teacher.texts(masked_rows())[0] == "The [UNK] isn't [UNK]."
    teacher.tokenizer.unk_token = None
    with pytest.raises(PotstillError, match=r"neither a mask nor an unknown token.*p_mask to 0"):
        teacher.texts(masked_rows())
    assert teacher.texts(masked_rows().slice(2)) == ["A  film"]


def test_heads_are_exact(tmp_path: Path) -> None:
    write_encoder(tmp_path, labels=1)
    texts = [text for rows in sentences().values() for _, text in rows]
    exact = load_teacher(tmp_path, "cpu", "float32").predict(texts, 32, 256)
    teacher = load_teacher(tmp_path, "cpu", "bfloat16")
    found = teacher.predict(texts, 32, 256)
    assert teacher.model.base_model.dtype == torch.bfloat16
    assert teacher.model.classifier.weight.dtype == torch.float32
    # By chance two scores are the same float32 number.
    assert min(len(np.unique(found)), len(np.unique(exact))) >= len(texts) - 3
    assert np.corrcoef(found[:, 0], exact[:, 0])[0, 1] > 0.99
    # The head of another family is exact too.
    from transformers import RobertaConfig, RobertaForSequenceClassification

    config = RobertaConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=40, num_labels=1,
    )  # fmt: skip
    model = keep_head_exact(RobertaForSequenceClassification(config).to(torch.bfloat16)).eval()
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([[0, 5, 6, 2]])).logits
    assert logits.dtype == torch.float32
    assert model.roberta.dtype == torch.bfloat16


def test_a_linear_layer_over_mean_states_is_a_teacher(tmp_path: Path) -> None:
    write_encoder(tmp_path / "encoder")
    model, tokenizer = load_classifier(tmp_path / "encoder", ["no", "yes"], "multilabel", pooled=True)
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    # transformers itself takes it for the encoder that is there.
    assert (config["architectures"], config["pooling"]) == (["BertModel"], "mean")
    assert is_classifier(config) and content_of(tmp_path) is Content.teacher
    texts = [text for _, text in sentences()["dev"]]
    vectors = load_vector_model(tmp_path, "cpu", "float32", "mean").predict(texts, 32, 256)
    teacher = load_teacher(tmp_path, "cpu", "float32")
    assert teacher.kind == "multilabel" and output_layer(teacher.model) is teacher.model.classifier
    weights = load_file(tmp_path / HEAD)
    expected = vectors @ weights["weight"].numpy().T + weights["bias"].numpy()
    np.testing.assert_allclose(teacher.predict(texts, 32, 256), expected, atol=1e-5)
    assert load_teacher(tmp_path, "cpu", "bfloat16").model.classifier.weight.dtype == torch.float32
    states = StateTeacher(teacher.model, tokenizer, teacher.device, "float32", "", (1, 2))
    assert states.predict(texts, 32, 256).shape == (len(texts), 64)
    # Tuned on as any model, it gets the head of its architecture.
    assert type(load_classifier(tmp_path, ["a", "b", "c"])[0]).__name__ == "BertForSequenceClassification"
    digest = digest_model(tmp_path)
    for change, message in (
        ({"bias": torch.full((2,), torch.nan)}, "NaN or infinite values, in bias"),
        ({"bias": torch.zeros(3)}, r"linear\.safetensors is not the linear layer that config\.json describes"),
    ):
        save_file(weights | change, tmp_path / HEAD)
        assert digest_model(tmp_path) != digest
        with pytest.raises(PotstillError, match=message):
            load_teacher(tmp_path, "cpu", "float32")
    (tmp_path / HEAD).unlink()
    with pytest.raises(PotstillError, match="its weights lack classifier"):
        load_teacher(tmp_path, "cpu", "float32")


def test_the_digest_covers_all_that_decides_tokens_and_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    digests = [digest_model(tmp_path)]
    names = ["vocab.json", "merges.txt", "spiece.model", "special_tokens_map.json", "added_tokens.json"]
    for name in [*names, "model.safetensors.index.json"]:
        for content in ("one", "two"):
            (tmp_path / name).write_text(content)
            digests.append(digest_model(tmp_path))
    assert len(set(digests)) == 13
    (tmp_path / "training.json").write_text("{}")
    assert digest_model(tmp_path) == digests[-1]


class TestWeights:
    """transformers makes up what a file of weights lacks; here, that is an error."""

    @pytest.fixture(params=FAMILIES)
    def encoder(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        return write_model(tmp_path / "encoder", request.param)

    @staticmethod
    def change(folder: Path, names: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        path = folder / "model.safetensors"
        save_file(names(load_file(path)), path, {"format": "pt"})

    def refused(self, folder: Path, message: str) -> None:
        for load in (
            lambda: load_classifier(folder, ["no", "yes"]),
            lambda: load_vector_model(folder, "cpu", "float32", "mean"),
        ):
            with pytest.raises(PotstillError, match=message):
                load()

    def test_only_the_head_is_new(self, encoder: Path) -> None:
        model, _ = load_classifier(encoder, ["no", "yes"])
        # Not as a finished teacher: its head would be random.
        with pytest.raises(PotstillError, match=r"its weights lack .*classifier"):
            load_classifier(encoder)
        model.save_pretrained(encoder)
        assert load_teacher(encoder, "cpu", "float32").label_names == ["no", "yes"]

    def test_names_with_a_prefix(self, encoder: Path) -> None:
        self.change(encoder, lambda tensors: {f"module.{n}": t for n, t in tensors.items()})
        self.refused(encoder, r"its weights lack .* more, but module\.")

    def test_a_layer_that_is_missing(self, encoder: Path) -> None:
        self.change(encoder, lambda tensors: {n: t for n, t in tensors.items() if ".2." not in n})
        self.refused(encoder, r"its weights lack .*\.2\.")

    def test_a_layer_too_many(self, encoder: Path) -> None:
        config = json.loads((encoder / "config.json").read_text())
        layers = "n_layers" if "n_layers" in config else "num_hidden_layers"
        config[layers] = 2
        if kinds := config.get("layer_types"):
            config["layer_types"] = kinds[:2]
        (encoder / "config.json").write_text(json.dumps(config))
        self.refused(encoder, r"its weights have .*\.2\..*, for which config.json has no layer")

    def test_another_size(self, encoder: Path) -> None:
        config = json.loads((encoder / "config.json").read_text())
        sizes = {"hidden_size": 8, "dim": 8}
        config |= {name: size for name, size in sizes.items() if name in config}
        (encoder / "config.json").write_text(json.dumps(config))
        with pytest.raises(PotstillError, match=r"has the shape|not a model that"):
            load_classifier(encoder, ["no", "yes"])

    def test_a_pooler_is_not_needed(self, tmp_path: Path) -> None:
        folder = write_model(tmp_path, "bert")
        self.change(folder, lambda tensors: {n: t for n, t in tensors.items() if "pooler" not in n})
        load_vector_model(folder, "cpu", "float32", "mean")
        load_classifier(folder, ["no", "yes"])
