"""Students of word pieces: cut out of models of any family, saved, loaded, padded and masked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.networks.transformer import cut
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.student import Student, attend_quickly, load_student, save_student
from pipeline_lib.models.students.word_vectors import word_embeddings
from pipeline_lib.models.vector_model import load_vector_model
from pipeline_lib.params import StudentSettings, student_settings
from pipeline_lib.training.distillation.initialisation import start_from_layers, start_from_pieces
from tests.kit.pretrained import LAYERS, PIECES, WORDS, write_model

PAIRS = [
    ("A good film.", "the plots"),
    ("dull", "The plot is not good. a a a"),
    ("film", "film"),
    ("", "unheard words"),
    ("the film is a good film is a good film", "dull plot"),
]
SINGLES = [first + " " + second for first, second in PAIRS]


def make_student(folder: Path, pair: bool = True, **changes: Any) -> Student:
    settings = settings_of(LAYERS, **changes)
    start = start_from_layers(folder, settings)
    torch.manual_seed(2)
    model = start.build(settings, pair, ["no", "yes"]).eval()
    return Student(model, start.tokenizer, torch.device("cpu"))


def make_bare(folder: Path, pair: bool = True, vectors: bool = False) -> Student:
    settings = settings_of(PIECES)
    start = start_from_pieces(folder, settings, vectors)
    torch.manual_seed(2)
    model = start.build(settings, pair, ["no", "yes"]).eval()
    return Student(model, start.tokenizer, torch.device("cpu"))


def settings_of(values: dict[str, Any], **changes: Any) -> StudentSettings:
    return student_settings(values | changes)


@pytest.mark.parametrize("pair", [True, False])
def test_it_is_the_models_own_layers(family: Path, pair: bool) -> None:
    texts = PAIRS if pair else SINGLES
    student = make_student(family, pair, layers=[0, 1, 2], pool="last")
    teacher = load_vector_model(family, "cpu", "float32", "cls")
    batch = student.encode(texts).batch(np.arange(len(texts)))
    found = student.model.outputs(batch)
    assert found["states"].shape == (len(texts), 3, 16)
    np.testing.assert_allclose(found["vector"].detach().numpy(), teacher.predict(texts, 14, 512), atol=1e-5)
    assert torch.equal(found["vector"], found["states"][:, -1])


def test_the_chosen_layers_follow_one_another(bert: Path) -> None:
    whole = AutoModel.from_pretrained(bert).eval()
    student = make_student(bert, layers=[2, 0])
    batch = student.encode(PAIRS[:1]).batch(np.array([0]))
    hidden = whole.embeddings(batch["ids"], token_type_ids=batch["segments"])
    expected = []
    for number in (2, 0):
        hidden = whole.encoder.layer[number](hidden)
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        expected.append(hidden[:, 0])
    found = student.model.outputs(batch)
    states = torch.stack(expected, 1)
    assert torch.allclose(found["states"], states, atol=1e-5)
    assert torch.allclose(found["vector"], states.mean(1), atol=1e-5)
    assert batch["segments"].sum() > 0


@pytest.mark.parametrize("make", [make_student, make_bare])
@pytest.mark.parametrize("pair", [True, False])
def test_neither_padding_nor_saving_changes_anything(
    family: Path, make: Any, pair: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    student, texts = make(family, pair), PAIRS if pair else SINGLES
    sentences = student.encode(texts)
    assert sentences.pad_id == student.tokenizer.pad_id
    together = student.model.outputs(sentences.batch(np.arange(len(texts))))["logits"]
    alone = np.concatenate([student.logits([text]) for text in texts])
    np.testing.assert_allclose(together.detach().numpy(), alone, atol=1e-5)
    np.testing.assert_allclose(student.logits(texts), alone, atol=1e-5)
    assert np.ptp(alone[:, 0]) > 1e-4
    save_student(tmp_path / "s", student.model, student.tokenizer)
    monkeypatch.chdir(tmp_path)
    loaded = load_student(tmp_path / "s")
    np.testing.assert_allclose(loaded.logits(texts), alone, atol=1e-5)
    assert loaded.parameters(True) == student.parameters(True)
    config = (tmp_path / "s/config.json").read_text()
    assert str(family) not in config and "_name_or_path" not in config


def test_a_pretrained_model_predicts_with_all_of_torchs_threads_and_an_lstm_with_one(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for make, threads in ((make_student, 2), (make_bare, 1)):
            student, seen = make(bert, pair=False), []
            outputs = student.model.outputs

            def spy(batch: Any, outputs: Any = outputs, seen: list[int] = seen) -> Any:
                seen.append(torch.get_num_threads())
                return outputs(batch)

            monkeypatch.setattr(student.model, "outputs", spy)
            student.logits(SINGLES)
            assert set(seen) == {threads}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_texts_are_read_as_the_teacher_reads_them(family: Path) -> None:
    student = make_student(family)
    teacher = load_vector_model(family, "cpu", "float32", "cls")
    found, expected = student.encode(PAIRS), teacher.encode(PAIRS, 14)
    assert found.ids.tolist() == expected.ids.tolist() and found.lengths.max() == 14
    kind = family.name.rstrip("0123456789")
    assert found.pad_id == expected.pad_id == (kind in ("mpnet", "roberta"))
    assert (found.segments is not None) == (expected.segments is not None) == (kind == "bert")
    if kind == "bert":
        assert found.segments.tolist() == expected.segments.tolist()


def test_what_is_stored(bert: Path, tmp_path: Path) -> None:
    whole = AutoModel.from_pretrained(bert)
    layer = sum(p.numel() for p in whole.encoder.layer[0].parameters())
    embeddings = sum(p.numel() for p in whole.embeddings.parameters())
    student = make_student(bert, layers=[1], classifier=None)
    head = 2 * 16 + 2
    assert student.parameters(True) == embeddings + layer + head
    assert isinstance(student.model.hidden, torch.nn.Identity)
    # Dropout is the models own or the settings.
    for dropout, expected in ((None, 0.1), (0.3, 0.3)):
        model = make_student(bert, dropout=dropout).model
        own = model.encoder.model.config
        assert own.hidden_dropout_prob == own.attention_probs_dropout_prob == expected
        assert model.encoder.dropout.p == expected
    # The same students give the same files.
    for name in ("a", "b"):
        student = make_student(bert)
        save_student(tmp_path / name, student.model, student.tokenizer)
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_training_and_predicting_attention_agree(family: Path) -> None:
    student = make_student(family)
    batch = student.encode(PAIRS).batch(np.arange(len(PAIRS)))
    expected = student.model.outputs(batch)["logits"]
    for training in (False, True):
        student = make_student(family)
        attend_quickly(student.model, training)
        with torch.set_grad_enabled(training):
            found = student.model.outputs(batch)["logits"]
        assert torch.allclose(found, expected, atol=1e-5)
    found.sum().backward()
    gradients = {name: p.grad for name, p in student.model.named_parameters()}
    assert all(grad is not None and torch.isfinite(grad).all() for grad in gradients.values())


def test_vectors_are_the_models_in_fewer_dimensions(bert: Path) -> None:
    table = make_bare(bert, vectors=True).model.encoder.embeddings.trained.weight.detach().numpy()
    own = word_embeddings(bert)
    assert table.shape == (len(WORDS) + 5, 5) and own.shape[1] == 16
    present = own.any(axis=1)
    np.testing.assert_allclose((table[present] ** 2).sum(1).mean(), 9.0, rtol=1e-5)
    # Principal components keep what distances there are, as far as five can, up to one scale.
    distances = [np.linalg.norm(rows[present][:, None] - rows[present][None], axis=-1).ravel() for rows in (table, own)]
    assert np.corrcoef(*distances)[0, 1] > 0.8
    with pytest.raises(PotstillError, match="embedding_size: 17, but the word pieces"):
        start_from_pieces(bert, settings_of(PIECES, embedding_size=17), True)


def test_what_cannot_be_cut_is_refused(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(PotstillError, match="cannot be cut out"):
        start_from_layers(bert, settings_of(LAYERS, layers=[3]))
    with pytest.raises(ValueError, match="no list of its 7 layers"):
        model = AutoModel.from_pretrained(bert)
        model.config.num_hidden_layers = 7
        cut(model, [0], None)
    with pytest.raises(ValueError, match="`layers`: each may appear only once"):
        settings_of(LAYERS, layers=[1, 1])
    # ModernBERT's first and third layer see all tokens, the second those beside each.
    folder = write_model(tmp_path, "modernbert")
    model = AutoModel.from_pretrained(folder)
    types = list(model.config.layer_types)
    config = cut(model, [0, 2], None)
    assert config["layer_types"] == [types[0], types[2]] and len(set(types)) == 2
    with pytest.raises(PotstillError, match="would be missing or of another shape"):
        start_from_layers(folder, settings_of(LAYERS, layers=[1, 2]))
    # They have no vector of one sentence.
    student = make_student(bert)
    save_student(tmp_path, student.model, student.tokenizer)
    with pytest.raises(PotstillError, match="a transformer student has no vector for a single"):
        load_encoder(tmp_path)
