"""An encoder learns the teacher's vectors, beats a constant, and survives a kill."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, sha256_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.networks.student import StudentNetwork
from pipeline_lib.models.students.sentence_encoder import SentenceEncoder, load_encoder
from pipeline_lib.models.students.student import Student
from pipeline_lib.outputs.vectors import VectorPass
from pipeline_lib.training.distillation.encoders import EncoderTraining
from pipeline_lib.training.distillation.general import encoder_row
from pipeline_lib.training.distillation.initialisation import start_from_encoder
from pipeline_lib.training.objectives import representation_loss
from tests.kit.kills import killed_and_resumed

from .rows import HELD_BACK, LAYER, TASK, TRAIN, MakeRow, first_of, ignore, key_of, train_one

pytestmark = pytest.mark.usefixtures("store_home")


def test_it_learns_more_than_a_constant(run: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    student = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    teacher = torch.tensor([[5.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    assert representation_loss(student, teacher).item() == pytest.approx((0 + 1 + 0.5) / 3)
    # It learns more than a constant.
    record = train_one(run(centre=True), tmp_path / "sra", ignore)
    # Without the common direction a constant says nothing.
    assert record.loss < 0.6 * record.constant_loss and record.constant_loss > 0.4
    assert record.sentences == len(TRAIN) and record.held_back_sentences == len(HELD_BACK)
    assert len(record.history) == 8
    assert record.history[0].dev > record.loss == record.history[-1].dev
    # A finished encoder is found.
    first = train_one(run({"epochs": 2}), tmp_path / "a", ignore)
    monkeypatch.setattr(EncoderTraining, "prepare", None)
    assert train_one(run({"epochs": 2}), tmp_path / "b", ignore) == first
    assert sha256_folder(tmp_path / "a") == sha256_folder(tmp_path / "b")


@pytest.mark.parametrize("student", [None, LAYER])
def test_the_losses_are_those_of_the_encoder_that_was_kept(
    run: MakeRow, tmp_path: Path, student: dict[str, Any] | None
) -> None:
    own = run(centre=True, student=student)
    record = train_one(own, tmp_path / "sra", ignore)
    targets = first_of(own).train.vectors()
    mean = targets[np.arange(len(TRAIN))].mean(0)
    training = first_of(own)
    teacher = VectorPass.of(training.params, training.layout.model("minilm")).teacher()
    wanted = teacher.predict(HELD_BACK, 32, 512) - mean
    trained_to = {"model": teacher.digest, "pooling": teacher.pooling, "max_length": 32, "mean": "mean.npy"}
    assert read_json(tmp_path / "sra/targets.json") == trained_to
    np.testing.assert_allclose(np.load(tmp_path / "sra/mean.npy"), mean, atol=1e-4)
    found = load_encoder(tmp_path / "sra").encode(HELD_BACK)
    cosines = (wanted * found).sum(1) / np.linalg.norm(wanted, axis=1) / np.linalg.norm(found, axis=1)
    assert record.loss == pytest.approx((1 - cosines).mean() / 2, abs=1e-3)


def test_a_kill_loses_nothing(run: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = run({"epochs": 3})
    train_one(row, tmp_path / "whole", ignore)
    killed_and_resumed(partial(train_one, row, tmp_path / "killed"), 13, tmp_path / "another", monkeypatch)
    assert sha256_folder(tmp_path / "whole") == sha256_folder(tmp_path / "killed")


def test_what_cannot_be_trained_is_refused(run: MakeRow, tmp_path: Path, data: Path) -> None:
    own = run()
    students = first_of(own).params.students
    students["bilstm_sra"] = students["bilstm_sra"].model_copy(update={"width": 24})
    with pytest.raises(PotstillError, match=r"students\.bilstm_sra\.width: 24.*Set it to 32"):
        train_one(own, tmp_path / "a", ignore)
    own = run(wikipedia=0)
    with pytest.raises(PotstillError, match="no sentences to train on"):
        train_one(own, tmp_path / "a", ignore)
    first = run(tasks={TASK: None})
    params = first_of(first).params.model_copy(deep=True)
    params.optimisers["other"] = params.optimisers["sra"]
    params.encoders["another"] = params.encoders["sra"].model_copy(update={"optimiser": "other"})
    assert key_of(encoder_row(params, "another", Layout(data), "cpu")) == key_of(first)
    assert key_of(run(tasks={TASK: None}, centre=True)) != key_of(first)


def test_a_layer_of_the_teacher_learns_its_vectors(run: MakeRow, tmp_path: Path) -> None:
    own = run({"learning_rates": [3.0e-3]}, LAYER, centre=True)
    record = train_one(own, tmp_path / "leaf", ignore)
    assert record.loss < 0.6 * record.constant_loss
    # It is built again without the model that it was cut out of, and so is a student above it.
    encoder, settings = load_encoder(tmp_path / "leaf"), first_of(own).student
    student = start_from_encoder(tmp_path / "leaf", settings).build(settings, False, ["no", "yes"])
    sentences = student_of(student, encoder).encode(HELD_BACK[:9]).batch(np.arange(9))
    with torch.inference_mode():
        found = student.eval().outputs(sentences)["vector"].numpy()
    np.testing.assert_allclose(found, encoder.encode(HELD_BACK[:9]), atol=1e-5)
    # What a model lacks is refused.
    with pytest.raises(PotstillError, match=r"bilstm_sra\.layers: 2, but .* has 2 layers"):
        run(student=LAYER | {"layers": [0, 2]})
    with pytest.raises(PotstillError, match=r"no sentence vector of .* or a dse with a `width`"):
        run(student=LAYER | {"width": None})
    with pytest.raises(PotstillError, match=r"students\.bilstm_sra\.model: no 'none'"):
        run(student=LAYER | {"model": "none"})
    with pytest.raises(PotstillError, match="`width`: nothing in a frozen model is trained"):
        run(student=LAYER | {"frozen": True})


def student_of(network: StudentNetwork, encoder: SentenceEncoder) -> Student:
    return Student(network, encoder.tokenizer, encoder.device)


def test_a_models_name_does_not_count_but_its_weights_do(run: MakeRow, data: Path, tmp_path: Path) -> None:
    first = run(student=LAYER)
    layout = Layout(tmp_path / "data")
    for name in ("raw/vectors", "wikipedia", "tasks", "vectors"):
        (layout.data / name).parent.mkdir(parents=True, exist_ok=True)
        (layout.data / name).symlink_to(data / name)
    shutil.copytree(data / "raw/models/minilm", layout.data / "raw/models/other")
    params = first_of(first).params.model_copy(deep=True)
    params.students["bilstm_sra"] = first_of(first).student.model_copy(update={"model": "other"})
    assert key_of(encoder_row(params, "sra", layout, "cpu")) == key_of(first)
    config = layout.data / "raw/models/other/config.json"
    write_json(config, read_json(config) | {"another": 1})
    assert key_of(encoder_row(params, "sra", layout, "cpu")) != key_of(first)
    assert key_of(run(student=LAYER | {"layers": [1]})) != key_of(first)


def test_an_encoder_is_saved_whole(run: MakeRow, tmp_path: Path) -> None:
    train_one(run({"epochs": 1}), tmp_path / "sra", ignore)
    config = json.loads((tmp_path / "sra/config.json").read_text())
    assert config["model_type"] == "distillery_encoder" and not (tmp_path / "sra/mean.npy").exists()
    encoder = load_encoder(tmp_path / "sra")
    vectors = encoder.encode([*HELD_BACK[:5], "", "unknownword"])
    assert vectors.shape == (7, 32) and np.abs(vectors).max() <= 1.0
    np.testing.assert_allclose(vectors[5], vectors[6], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(HELD_BACK[2:3])[0], vectors[2], atol=1e-5)
    with pytest.raises(PotstillError, match="no sentence encoder"):
        load_encoder(tmp_path)
