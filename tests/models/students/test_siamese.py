"""The student `dse`: a pretrained model that reads each sentence apart, and f above its vectors."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.exports.onnx.exporter import export_onnx
from pipeline_lib.exports.onnx.student import load_onnx_student
from pipeline_lib.models.networks.student import ENCODED, StudentNetwork
from pipeline_lib.models.students import student as student_module
from pipeline_lib.models.students.sentence_encoder import load_encoder, save_encoder, with_vectors
from pipeline_lib.models.students.student import Student, attend_quickly, load_student, save_student
from pipeline_lib.params import StudentSettings, student_settings
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.distillation.initialisation import start_from_layers
from pipeline_lib.training.loop import Batch, Settings, fit
from pipeline_lib.training.objectives import objective_loss
from pipeline_lib.training.optimisers import make_optimiser
from tests.kit.pretrained import DSE, WORDS, write_model

CPU = torch.device("cpu")
PAIRS = [
    ("A good film.", "the plots"),
    ("dull", "The plot is not good. a a a"),
    ("film", "film"),
    ("", "unheard words"),
    ("the film is a good film is a good film is not", "dull plot"),
]
SINGLES = [first + " " + second for first, second in PAIRS]


def settings_of(**changes: Any) -> StudentSettings:
    return student_settings(DSE | changes)


def make_student(folder: Path, pair: bool = True, labels: tuple[str, ...] = ("no", "yes"), **changes: Any) -> Student:
    settings = settings_of(**changes)
    start = start_from_layers(folder, settings)
    torch.manual_seed(2)
    model = start.build(settings, pair, [*labels]).eval()
    return Student(model, start.tokenizer, CPU)


def plain_vectors(folder: Path, texts: Sequence[str], last: int, pooling: str = "mean") -> np.ndarray:
    """Return vectors by the paper's words, (texts, width): a sentence, a layer, a token a time."""
    model = AutoModel.from_pretrained(folder).eval()
    tokenizer, found = AutoTokenizer.from_pretrained(folder), []
    for text in texts:
        encoded = tokenizer(text, truncation=True, max_length=14, return_tensors="pt")
        ids = encoded["input_ids"][0].tolist()
        assert (ids[0], ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
        with torch.no_grad():
            states = model(**encoded, output_hidden_states=True).hidden_states
        vector = []
        for layer in range(len(states) - last, len(states)):
            places = range(1, len(ids)) if pooling == "mean" else [0]
            tokens = [states[layer][0, place].double() for place in places]
            vector += (sum(tokens) / len(tokens)).tolist()
        found.append(vector)
    return np.array(found)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("last", [1, 3])
def test_vectors_are_the_papers_whatever_stands_beside_them(
    family: Path, last: int, pooling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(last)
    texts = [" ".join(draw.choice(WORDS, size)) for size in draw.integers(0, 20, 12)]
    expected = plain_vectors(family, texts, last, pooling)
    student = make_student(family, last=last, pooling=pooling)
    save_student(tmp_path, student.model, student.tokenizer)
    encoder = load_encoder(str(tmp_path))
    assert encoder.width == expected.shape[1] == 16 * last
    for size in (1, 5, 12):
        monkeypatch.setattr(student_module, "PRETRAINED_BATCH", size)
        found = encoder.encode(texts)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=2e-6)
    assert np.ptp(expected, axis=0).max() > (0.1 if pooling == "mean" else 1e-3)


def test_a_width_puts_a_linear_map_behind_the_pooled_states(family: Path, tmp_path: Path) -> None:
    texts = [first for first, _ in PAIRS]
    settings = settings_of(width=5)
    start = start_from_layers(family, settings)
    torch.manual_seed(4)
    model = start.encoder(settings).eval()
    map_ = model.projection
    expected = plain_vectors(family, texts, 2) @ map_.weight.detach().numpy().T.astype(float)
    expected += map_.bias.detach().numpy()
    save_encoder(tmp_path / "encoder", model, start.tokenizer, settings, start.pretrained)
    encoder = load_encoder(tmp_path / "encoder")
    assert encoder.width == settings.sentence_width == 5
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=2e-6)
    assert np.ptp(expected, axis=0).max() > 1e-2
    export_onnx(tmp_path / "encoder", tmp_path / "onnx")
    found = load_onnx_student(tmp_path / "onnx").outputs(texts)
    np.testing.assert_allclose(found, expected, atol=5e-6)


@pytest.mark.parametrize("pair", [True, False])
def test_what_compares_sees_sentences_read_apart(family: Path, pair: bool, tmp_path: Path) -> None:
    labels = ("no", "yes") if pair else ("score",)
    student, texts = make_student(family, pair, labels), PAIRS if pair else SINGLES
    sides = zip(*texts, strict=True) if pair else [texts]
    vectors = [torch.from_numpy(plain_vectors(family, side, 2)).float() for side in sides]
    features = vectors[0]
    if pair:
        u, v = vectors
        features = torch.cat([u, v, u * v, (u - v).abs()], dim=-1)
    own = student.model
    units = torch.relu(features @ own.hidden[0].weight.T + own.hidden[0].bias)
    expected = (units @ own.logits.weight.T + own.logits.bias).detach().numpy()
    found = student.logits(texts)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # One by one, without padding; and in one batch, as training reads them.
    alone = np.concatenate([student.logits([text]) for text in texts])
    np.testing.assert_allclose(alone, found, atol=1e-5)
    batch = student.encode(texts).batch(np.arange(len(texts)))
    np.testing.assert_allclose(own.outputs(batch)["logits"].detach().numpy(), found, atol=1e-5)
    assert "segments" not in batch and np.ptp(found[:, 0]) > 1e-4
    save_student(tmp_path, student.model, student.tokenizer)
    loaded = load_student(str(tmp_path))
    assert loaded.is_pair == pair and loaded.label_names == [*labels]
    np.testing.assert_allclose(loaded.logits(texts), found, atol=1e-6)
    assert loaded.parameters(True) == student.parameters(True)
    assert str(family) not in (tmp_path / "config.json").read_text()


def test_layers_and_dropout_are_the_models(bert: Path) -> None:
    whole = AutoModel.from_pretrained(bert).eval()
    student = make_student(bert, layers=[2, 0], last=2)
    batch = student.encode([("A good film.", "")]).batch(np.array([0]))
    hidden, expected = whole.embeddings(batch["ids"]), []
    for number in (2, 0):
        hidden = whole.encoder.layer[number](hidden)
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        expected.append(hidden[:, 1:].mean(1))
    found = student.model.outputs(batch)["vector"]
    assert torch.allclose(found, torch.cat(expected, -1), atol=1e-6)
    # Dropout is the models own alone.
    for dropout, expected in ((None, 0.1), (0.3, 0.3)):
        config = make_student(bert, dropout=dropout).model.encoder.model.config
        assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == expected


def training_set(student: Student) -> Sentences:
    return replace(student.encode(PAIRS), targets={"labels": np.array([0, 1, 1, 0, 1])})


def train(model: StudentNetwork, sentences: Sentences) -> list[float]:
    losses = []

    def loss(model: StudentNetwork, batch: Batch) -> torch.Tensor:
        return objective_loss({"labels": 1.0}, model.outputs(batch), batch)

    def evaluate(model: StudentNetwork) -> float:
        losses.append(float(loss(model, sentences.batch(np.arange(len(sentences))))))
        return -losses[-1]

    settings = Settings(
        **{"optimiser": "adam", "learning_rate": 1e-2, "schedule": "constant", "warmup": 0.0},
        **{"batch_size": 2, "epochs": 6, "max_steps": None, "evaluate_every": None},
        **{"clip_norm": 1.0, "weight_decay": 0.0, "precision": "float32", "seed": 1},
    )
    fit(model, LengthSorted(sentences, 2, 1), loss, evaluate, settings, Path("none.safetensors"))
    return losses


@pytest.mark.parametrize("known", [True, False])
def test_a_frozen_encoder_stays_bit_for_bit(
    bert: Path, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    student = make_student(bert, frozen=True, dropout=0.5)
    model, given = student.model, AutoModel.from_pretrained(bert)
    sentences = training_set(student)
    attend_quickly(model, training=True)
    if known:
        sentences = with_vectors(model, sentences, CPU)
        monkeypatch.setattr(model.encoder, "forward", None)  # it is not asked again
    head = {id(p) for part in (model.hidden, model.logits) for p in part.parameters()}
    settings = Settings("adam", 1.0, "constant", 0, 1, 1, None, None, None, 0, "float32", 1)
    groups = make_optimiser(model, settings).param_groups
    assert {id(p) for group in groups for p in group["params"]} == head
    losses = train(model, sentences)
    assert losses[-1] < losses[0]
    kept = dict(given.named_parameters())
    for name, weight in model.encoder.model.named_parameters():
        assert torch.equal(weight, kept[name]) and weight.grad is None


def test_vectors_that_are_known_give_the_same_outputs(bert: Path) -> None:
    student = make_student(bert, frozen=True)
    sentences = training_set(student)
    found = with_vectors(student.model, sentences, CPU)
    assert {*found.targets} == {"labels", *ENCODED}
    rows = np.array([3, 0])
    expected = student.model.outputs(sentences.batch(rows))
    for name, values in student.model.outputs(found.batch(rows)).items():
        assert torch.allclose(values, expected[name], atol=1e-6)
    single = make_student(bert, pair=False, frozen=True)
    known = with_vectors(single.model, single.encode(SINGLES), CPU)
    assert {*known.targets} == {ENCODED[0]}
    logits = single.model.outputs(known.batch(np.arange(5)))["logits"].detach().numpy()
    np.testing.assert_allclose(logits, single.logits(SINGLES), atol=1e-6)


def test_an_encoder_that_is_not_frozen_learns(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = (student := make_student(bert)).model
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    attend_quickly(model, training=True)
    losses = train(model, training_set(student))
    assert losses[-1] < losses[0]
    # Those of words, of every layer, and of f.
    moved = {name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])}
    assert {name.split(".")[0] for name in moved} == {"encoder", "hidden", "logits"}
    matrices = {name for name, weight in before.items() if weight.dim() == 2 and "layer" in name}
    assert matrices and matrices <= moved


def test_a_dse_student_is_checked(tmp_path: Path) -> None:
    values = settings_of().model_dump()
    assert values.pop("pooling") == "mean"
    assert student_settings(values) == settings_of(pooling="mean")
    with pytest.raises(ValueError, match="pooling"):
        settings_of(pooling="pooler")
    # Settings that contradict themselves are refused.
    with pytest.raises(ValueError, match="`last` is 2, but `layers` names 1"):
        settings_of(layers=[0])
    with pytest.raises(ValueError, match="`layers`: each may appear only once"):
        settings_of(layers=[0, 0])
    # A tokenizer that begins with a word is refused.
    folder = write_model(tmp_path, "bert")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.post_processor = None
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(PotstillError, match=r"a dse student leaves out the first token, \[CLS\]"):
        make_student(folder)
