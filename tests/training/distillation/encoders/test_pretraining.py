"""An encoder learns the teacher's vectors, beats a constant, and survives a kill."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, sha256_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.outputs.vectors import VectorPass
from pipeline_lib.training import loop as training
from pipeline_lib.training.distillation.encoders import EncoderTraining, encoder_row
from pipeline_lib.training.objectives import representation_loss

from .rows import HELD_BACK, LAYER, TASK, TRAIN, MakeRow, first_of, ignore, key_of, train_one

pytestmark = pytest.mark.usefixtures("store_home")


def test_the_loss_by_hand() -> None:
    student = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    teacher = torch.tensor([[5.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    assert representation_loss(student, teacher).item() == pytest.approx((0 + 1 + 0.5) / 3)


def test_it_learns_more_than_a_constant(run: MakeRow, tmp_path: Path) -> None:
    record = train_one(run(centre=True), tmp_path / "sra", ignore)
    assert record.loss < 0.6 * record.constant_loss
    assert record.sentences == len(TRAIN) and record.held_back_sentences == len(HELD_BACK)
    assert len(record.history) == 8
    assert record.history[0].dev > record.loss == record.history[-1].dev


def test_a_common_direction_makes_the_loss_low(run: MakeRow, tmp_path: Path) -> None:
    short = {"epochs": 1}
    plain = train_one(run(short), tmp_path / "plain", ignore)
    assert not (tmp_path / "plain/mean.npy").exists()
    centred = train_one(run(short, centre=True), tmp_path / "centred", ignore)
    assert plain.constant_loss < 0.05 < plain.history[0].loss
    # Without the common direction a constant says nothing.
    assert centred.constant_loss > 0.4


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


def test_the_best_learning_rate_is_kept(run: MakeRow, tmp_path: Path) -> None:
    rates = {"learning_rates": [1.0e-5, 1.0e-2], "epochs": 3}
    steps: list[tuple[int, int]] = []
    record = train_one(run(rates), tmp_path / "a", lambda s, t, *_: steps.append((s, t)))
    assert record.settings.learning_rate == 1.0e-2
    search = json.loads((tmp_path / "a/search.json").read_text())
    assert search["best_dev_by_rate"]["1e-05"] < search["best_dev_by_rate"]["0.01"]
    assert record.loss == -search["best_dev_by_rate"]["0.01"]
    assert sorted(steps) == sorted([(n, 24) for n in range(1, 25)] * 2)


def test_a_finished_encoder_is_found(run: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = train_one(run({"epochs": 2}), tmp_path / "a", ignore)
    monkeypatch.setattr(EncoderTraining, "prepare", None)
    assert train_one(run({"epochs": 2}), tmp_path / "b", ignore) == first
    assert sha256_folder(tmp_path / "a") == sha256_folder(tmp_path / "b")


def test_names_do_not_count(run: MakeRow, data: Path) -> None:
    first = run(tasks={TASK: None})
    params = first_of(first).params.model_copy(deep=True)
    params.optimisers["other"] = params.optimisers["sra"]
    params.encoders["another"] = params.encoders["sra"].model_copy(update={"optimiser": "other"})
    assert key_of(encoder_row(params, "another", Layout(data), "cpu")) == key_of(first)
    assert key_of(run(tasks={TASK: None}, centre=True)) != key_of(first)


def test_a_kill_loses_nothing(run: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_one(run({"epochs": 4}), tmp_path / "whole", ignore)
    monkeypatch.setenv("POTSTILL_HOME", str(tmp_path / "another"))
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)

    def stop(step: int, *_: Any) -> None:
        if step == 19:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_one(run({"epochs": 4}), tmp_path / "killed", stop)
    steps: list[int] = []
    train_one(run({"epochs": 4}), tmp_path / "killed", lambda s, *_: steps.append(s))
    assert steps[0] in (19, 20)
    assert sha256_folder(tmp_path / "whole") == sha256_folder(tmp_path / "killed")


def test_another_width_is_refused(run: MakeRow, tmp_path: Path) -> None:
    own = run()
    students = first_of(own).params.students
    students["bilstm_sra"] = students["bilstm_sra"].model_copy(update={"width": 24})
    with pytest.raises(PotstillError, match=r"students\.bilstm_sra\.width: 24.*Set it to 32"):
        train_one(own, tmp_path / "a", ignore)


def test_no_sentences_are_refused(run: MakeRow, data: Path, tmp_path: Path) -> None:
    own = run(wikipedia=0)
    with pytest.raises(PotstillError, match="no sentences to train on"):
        train_one(own, tmp_path / "a", ignore)
