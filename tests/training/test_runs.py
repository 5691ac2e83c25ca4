"""Trainings that are the same are run once; the longest starts first; rates are searched for."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.entries import TRAINED
from pipeline_lib.shards.training_records import SearchRecord, Settings, StudentRecord, TrainingRecord
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training import progress, search
from pipeline_lib.training.distillation.encoders import EncoderTraining
from pipeline_lib.training.distillation.general import GeneralTraining
from pipeline_lib.training.distillation.joint import JointTraining
from pipeline_lib.training.distillation.students import StudentTraining
from pipeline_lib.training.progress import show_training
from pipeline_lib.training.runs import Message, Prepared, TrainingSpec, train_all
from pipeline_lib.training.search import TrainingRow, train_rows
from pipeline_lib.training.teachers.finetuning import TeacherTraining
from tests.kit.made_up import made_up_training

RUN: list[tuple[str, int, float]] = []


@dataclass(frozen=True)
class Line(TrainingSpec):
    """A line through the origin that is fitted to one of slope ``slope``."""

    kind: ClassVar[str] = "students"
    optimiser: ClassVar[Any] = SimpleNamespace(select="metric")
    record: ClassVar[type[TrainingRecord]] = StudentRecord
    name: str
    size: int
    slope: float = 3.0
    rate: float = 0.1
    seed: int = 1
    device: str = "cpu"

    @property
    def settings(self) -> Settings:
        fixed = {"warmup": 0.0, "epochs": 30, "max_steps": None, "evaluate_every": None}
        fixed |= {"clip_norm": None, "weight_decay": 0.0, "precision": "float32"}
        return Settings("adam", self.rate, "constant", batch_size=8, seed=self.seed, **fixed)

    @property
    def rows(self) -> int:
        return self.size

    @property
    def made_from(self) -> Any:
        return [self.size, self.slope]

    def prepare(self) -> Prepared:
        RUN.append((self.name, self.seed, self.rate))
        x = np.linspace(-1.0, 1.0, self.size, dtype=np.float32)
        words, offsets = np.ones(self.size, np.int32), np.arange(self.size + 1)
        sentences = Sentences(words, offsets, {"x": x, "y": self.slope * x}, 0)
        torch.manual_seed(self.seed)
        model = torch.nn.Linear(1, 1, bias=False)

        def loss(model: torch.nn.Module, batch: Any) -> torch.Tensor:
            return (model(batch["x"][:, None])[:, 0] - batch["y"]).pow(2).mean()

        def evaluate(model: torch.nn.Module) -> float:
            return -abs(float(model.weight) - self.slope)

        def finish(folder: Path, _: Any) -> dict[str, Any]:
            (folder / "slope.json").write_text(json.dumps(model.weight.item()))
            return {"rows": self.size}

        return Prepared(model, LengthSorted(sentences, 8, self.seed), loss, evaluate, finish)


LINES = [Line("short", 8), Line("long", 72), Line("the same", 8), Line("medium", 32)]


@pytest.fixture(autouse=True)
def store(store_home: Path) -> None:
    RUN.clear()


@pytest.mark.parametrize("workers", [1, 2])
def test_every_training_has_its_record(workers: int) -> None:
    heard: list[tuple[int, Message]] = []
    found = dict(train_all(LINES, LocalEngine(workers), lambda *m: heard.append(m)))
    assert {number: record.rows for number, record in found.items()} == {
        number: line.size for number, line in enumerate(LINES)
    }
    assert all(steps == LINES[number].planned_steps for number, (_, steps, _, _) in heard)
    assert found[0].best_dev > -0.2 and found[0].settings.learning_rate == 0.1


def test_trainings_that_are_the_same_are_run_once() -> None:
    list(train_all(LINES, LocalEngine(1), lambda *_: None))
    assert [name for name, _, _ in RUN] == ["long", "medium", "short"]
    list(train_all(LINES, LocalEngine(1), lambda *_: None))
    assert len(RUN) == 3
    # What determines a training is in its key.
    own = Line("a", 8)
    others = [Line("a", 9), Line("a", 8, 2.0), Line("a", 8, rate=0.2), Line("a", 8, seed=2)]
    others.append(Line("a", 8, device="cuda"))
    keys = {line.result.key for line in [own, *others]}
    assert len(keys) == 6
    assert Line("b", 8).result.key == own.result.key == Line("a", 8, device="cpu").result.key
    # The store lists trainings of every kind.
    trainings = (EncoderTraining, GeneralTraining, JointTraining, StudentTraining, TeacherTraining)
    assert {training.kind for training in trainings} <= {*TRAINED}


def test_the_best_rate_is_taken_and_written(tmp_path: Path) -> None:
    def row(name: str, rates: list[float]) -> TrainingRow[Line]:
        return TrainingRow(name, rates, [5, 6], lambda seed, rate: Line(name, 16, 3.0, rate, seed))

    done: list[Line] = []
    found = train_rows([row("a", [1e-6, 0.1]), row("b", [0.2])], LocalEngine(1), on_done=done.append)
    assert found["a"].rate == 0.1 and found["b"].rate == 0.2
    assert found["a"].by_rate[0.1].best_dev > found["a"].by_rate[1e-6].best_dev
    assert [seed for seed in found["a"].trainings] == [5, 6]
    assert set(RUN) == {("a", 5, 1e-6), ("a", 5, 0.1), ("a", 6, 0.1), ("b", 5, 0.2), ("b", 6, 0.2)}
    assert len(done) == len(RUN) == 5
    training, record = found["a"].trainings[6]
    slope = json.loads((training.result.folder / "slope.json").read_text())
    assert abs(slope - 3.0) == pytest.approx(-record.best_dev)
    # The search is written beside the trainings.
    row = TrainingRow("a", [1e-6, 0.1], [5], lambda seed, rate: Line("a", 16, 3.0, rate, seed))
    train_rows([row], LocalEngine(1))["a"].write(tmp_path)
    search = json.loads((tmp_path / "search.json").read_text())
    assert search["dev_loss_by_rate"] is None
    assert (search["seed"], search["learning_rate"]) == (5, 0.1)
    assert set(search["best_dev_by_rate"]) == {"1e-06", "0.1"}


def scorer(field: str, values: dict[float, float]) -> Any:
    """Return what stands for trainings, whose records have a field's value by their rate."""

    def scored(specs: Sequence[Line], *_: Any) -> list[tuple[int, TrainingRecord]]:
        fields = [made_up_training(**{field: values[spec.rate]}) for spec in specs]
        return [(number, TrainingRecord(**own)) for number, own in enumerate(fields)]

    return scored


def test_the_lowest_loss_can_choose_the_rate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rates = {1e-6: math.nan, 0.1: 0.4, 0.2: 0.3, 0.3: 0.5}
    monkeypatch.setattr(search, "train_all", scorer("best_dev_loss", rates))
    row = TrainingRow("a", list(rates), [5], lambda seed, rate: Line("a", 16, 3.0, rate, seed))
    found = train_rows([row], LocalEngine(1))["a"]
    assert found.rate == 0.2
    found.write(tmp_path)
    record = SearchRecord.read(tmp_path / "search.json")
    assert record.learning_rate == 0.2 and record.best_dev_by_rate["0.2"] == 0.9
    assert record.dev_loss_by_rate["0.1"] == 0.4 and len(record.dev_loss_by_rate) == 4
    # A score that is no number is the worst.
    rates = {1e-6: math.nan, 0.1: -0.4, 0.2: -0.3}

    monkeypatch.setattr(search, "train_all", scorer("best_dev", rates))
    row = TrainingRow("a", list(rates), [5], lambda seed, rate: Line("a", 16, 3.0, rate, seed))
    assert train_rows([row], LocalEngine(1))["a"].rate == 0.2


@dataclass(frozen=True)
class Run:
    planned_steps: int


def test_steps_add_up_over_runs_and_what_was_found_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[int, int, str]] = []

    @contextmanager
    def silent(title: str, unit: str) -> Iterator[object]:
        assert (title, unit) == ("training", "steps")
        yield lambda done, total, note: shown.append((done, total, note))

    monkeypatch.setattr(progress, "show_progress", silent)
    first, second = Run(100), Run(100)
    with show_training("training", [Run(100), Run(100)], lambda run, loss, best: f"{best}") as own:
        own.on_progress(first, (25, 50, 0.5, 0.7))
        own.on_progress(first, (40, 50, 0.5, 0.8))
        own.on_done(first)
        own.on_progress(second, (1, 100, 0.5, 0.1))
    assert shown == [(50, 200, "0.7"), (80, 200, "0.8"), (101, 200, "0.1")]


def test_the_best_so_far_is_named_by_what_selects() -> None:
    by_score, by_loss = SimpleNamespace(is_by_loss=False), SimpleNamespace(is_by_loss=True)
    assert progress.losses(by_score, 0.25, 0.5) == "loss 0.250 best dev 0.5000"
    assert progress.losses(by_score, 0.25, -math.inf) == "loss 0.250 best dev 0.0000"
    assert progress.losses(by_loss, 0.25, -0.5) == "loss 0.250 lowest on dev 0.5000"
    record = TrainingRecord(**made_up_training())
    assert progress.on_dev(record) == "0.9000"
    loss = record.model_copy(update={"best_dev_loss": 0.25})
    assert progress.on_dev(loss) == "0.9000 at the lowest loss 0.2500"
