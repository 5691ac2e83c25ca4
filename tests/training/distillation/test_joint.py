"""Joint trainings: heads learn beside each other, and every task is handed its own student."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.kinds import score
from pipeline_lib.base.kinds.calibration import log_losses
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.networks.imitation import JointNetwork
from pipeline_lib.models.networks.student import StudentConfig, StudentNetwork
from pipeline_lib.models.students.student import Student, load_student
from pipeline_lib.params import Params, check_params, student_settings
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.training_records import JointRecord, SearchRecord, StudentRecord
from pipeline_lib.shards.training_texts import unlabelled_folder
from pipeline_lib.training.distillation.encoded_sets import encode_sets
from pipeline_lib.training.distillation.joint import JointTraining, joint_row, write_joint_vocabulary, write_students
from pipeline_lib.training.distillation.plans import ModelReference, make_plan
from pipeline_lib.training.distillation.regressions import student_row
from pipeline_lib.training.search import TrainingRow, train_rows
from tests.kit.kills import killed_and_resumed
from tests.kit.tasks import text_columns, write_rows, write_task
from tests.pipeline.corpus import sentences, write_encoder
from tests.pipeline.workspace import small_params

MakeRow = Callable[..., TrainingRow[JointTraining]]
pytestmark = pytest.mark.usefixtures("store_home")
SENTIMENT, WARMTH = "reviews", "warmth"
"""Single sentences with classes, and pairs of sentences with scores."""
DEV = sentences()["dev"]
DEV_TEXTS = [text for _, text in DEV]
DEV_PAIRS = list(zip(DEV_TEXTS, DEV_TEXTS[1:] + DEV_TEXTS[:1], strict=True))


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    layout = Layout(tmp_path_factory.mktemp("data"))
    write_encoder(layout.model("minilm"))
    layout.raw_vectors.mkdir(parents=True)
    write_task(layout, SENTIMENT, pair=False)
    write_task(layout, WARMTH, pair=True)
    return layout


@pytest.fixture
def make(layout: Layout) -> MakeRow:
    """Return a maker of rows; named arguments change the row of ``joint``."""

    def make_row(optimiser: dict[str, Any] | None = None, **changes: Any) -> TrainingRow[JointTraining]:
        params = make_params(optimiser or {}, changes)
        write_joint_vocabulary(params, "mtl", layout)
        return joint_row(params, "mtl", layout, "cpu")

    return make_row


def make_params(optimiser: dict[str, Any], changes: dict[str, Any]) -> Params:
    values = small_params()
    pairs = {"text": ["first", "second"], "kind": "regression", "labels": {"min": 0.0, "max": 99.0}}
    values["tasks"][WARMTH] = values["tasks"][SENTIMENT] | pairs | {"metrics": ["pearson"]}
    values["optimisers"]["joint"] = values["optimisers"]["short"] | {
        **{"batch_size": 16, "epochs": 6, "evaluate_every": None, "learning_rates": [2.0e-2]},
        **optimiser,
    }
    row = {"student": "bilstm", "start": "vectors", "optimiser": "joint"}
    row |= {"tasks": {SENTIMENT: "original", WARMTH: "original"}} | changes
    values["joint"] = {"mtl": row}
    own = {"student": "bilstm", "start": "mtl", "data": "original", "iterations": None}
    own |= {"objective": {"logits": 1.0}, "baseline": None, "tasks": list(row["tasks"])}
    values["methods"] = {
        "tuned": own | {"optimiser": "joint"},
        "taken": own | {"optimiser": None},
        "bilstm": values["methods"]["bilstm"],
    }
    return check_params(values)


def train(row: TrainingRow[JointTraining], layout: Layout, on_progress: Callable[..., None]) -> Any:
    """Train a row and write its students; ``on_progress`` gets messages."""
    found = train_rows([row], LocalEngine(1), lambda _, message: on_progress(*message))[row.name]
    write_students(found, layout)
    return found


def ignore(*_: Any) -> None:
    """Show no progress."""


def first_of(row: TrainingRow[JointTraining]) -> JointTraining:
    return row.spec(row.seeds[0], row.rates[0])


@pytest.fixture(scope="module")
def ended(layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Layout:
    folder = tmp_path_factory.mktemp("ended")
    shutil.copytree(layout.data, folder / "data")
    own, params = Layout(folder / "data"), make_params({}, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POTSTILL_HOME", str(folder / "home"))
        write_joint_vocabulary(params, "mtl", own)
        train(joint_row(params, "mtl", own, "cpu"), own, ignore)
    return own


def test_every_task_learns_and_has_a_student_of_its_own(ended: Layout) -> None:
    folder = ended.joint_students("mtl", 1)
    reviews, warmth = (load_student(folder / task) for task in (SENTIMENT, WARMTH))
    assert not reviews.is_pair and warmth.is_pair
    labels = np.array([label for label, _ in DEV])
    scores = (20 * labels + 10 * np.roll(labels, -1) + 50).astype(np.float32)
    accuracy = score("accuracy", labels, reviews.logits(DEV_TEXTS))
    answers = warmth.logits(DEV_PAIRS)
    pearson = score("pearson", scores, answers)
    assert accuracy > 0.9 and pearson > 0.8
    # Scores come out in the labels' unit, although the training was in standard ones.
    assert np.abs(answers[:, 0] - scores).mean() < 8
    record = json.loads((folder / "training.json").read_text())
    best = {SENTIMENT: pytest.approx(accuracy), WARMTH: pytest.approx(pearson, abs=1e-5)}
    assert record["best_dev_by_task"] == best
    assert record["best_dev"] == pytest.approx((accuracy + pearson) / 2, abs=1e-5)
    assert all(entry["dev_by_task"].keys() == best.keys() for entry in record["history"])
    assert record["rows"] == 480 and record["steps"] == 6 * 30
    own = json.loads((folder / WARMTH / "training.json").read_text())
    assert own["best_dev"] == record["best_dev_by_task"][WARMTH] and own["rows_of_task"] == 240
    assert [entry["dev"] for entry in own["history"]] == [entry["dev_by_task"][WARMTH] for entry in record["history"]]
    assert SENTIMENT not in (folder / WARMTH / "training.json").read_text()
    assert sha256_folder(ended.joint_students("mtl", 2)) != sha256_folder(folder)
    # The encoder is one and the same, and so is the vocabulary.
    one, other = (student.model.encoder.state_dict() for student in (reviews, warmth))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert warmth.model.hidden[0].in_features == 4 * reviews.model.hidden[0].in_features
    assert len({(folder / task / "tokenizer.json").read_bytes() for task in (SENTIMENT, WARMTH)}) == 1


def test_the_lowest_loss_of_devs_labels_can_select(make: MakeRow, layout: Layout) -> None:
    row = make({"select": "loss", "epochs": 2, "learning_rates": [1.0e-1, 2.0e-2]})
    encode_sets([row], LocalEngine(1))
    searched = train(row, layout, ignore)
    folder = layout.joint_students("mtl", 1)
    record = JointRecord.read(folder / "training.json")
    losses = [one.dev_loss for one in record.history]
    assert record.selection == "evaluation whose mean loss is lowest on dev"
    assert record.best_dev_loss == min(losses)
    assert record.history[losses.index(min(losses))].step == record.best_step
    labels = np.array([label for label, _ in DEV])
    scores = (20 * labels + 10 * np.roll(labels, -1) + 50).astype(np.float32)
    reviews, warmth = (load_student(folder / task) for task in (SENTIMENT, WARMTH))
    scale = StudentRecord.read(folder / WARMTH / "training.json").label_scale
    errors = (warmth.logits(DEV_PAIRS)[:, 0] - scores) / scale["deviation"]
    expected = [log_losses(labels, reviews.logits(DEV_TEXTS)).mean(), np.mean(errors**2)]
    for task, loss in zip((SENTIMENT, WARMTH), expected, strict=True):
        alone = StudentRecord.read(folder / task / "training.json")
        assert alone.best_dev_loss == pytest.approx(loss, rel=1e-3)
    assert record.best_dev_loss == pytest.approx(np.mean(expected), rel=1e-3)
    search = SearchRecord.read(folder / WARMTH / "search.json")
    assert search.dev_loss_by_rate[f"{searched.rate:g}"] == min(search.dev_loss_by_rate.values())


def test_a_row_counts_by_the_weight_of_its_answer(make: MakeRow, layout: Layout, tmp_path: Path) -> None:
    shutil.copytree(layout.data, tmp_path / "data")
    own, texts = Layout(tmp_path / "data"), ShardSet.open(layout.transfer(SENTIMENT, "original"))
    outputs = own.outputs(SENTIMENT, "minilm", "original")
    weights = np.random.default_rng(1).integers(0, 4, texts.manifest.rows).astype(np.float32)
    answers = ShardSet.open(outputs).to_table().append_column("weight", pa.array(weights))
    write_rows(outputs, answers, texts.manifest.shards[0].sha256)
    row = joint_row(make_params({}, {}), "mtl", own, "cpu")
    write_joint_vocabulary(make_params({}, {}), "mtl", own)
    ready = first_of(row).prepare()
    parts = {part["task"]: part for part in map(ready.batches.collate, ready.batches.epoch(0))}
    batch = parts[SENTIMENT]
    assert "weights" not in parts[WARMTH] and len(set(batch["weights"].tolist())) > 1
    model = ready.model.eval()
    errors = model.students[0].outputs(batch)["logits"] - batch["logits"]
    wanted = (errors.pow(2).sum(1) * batch["weights"]).sum() / batch["weights"].sum()
    assert ready.loss(model, batch).item() == pytest.approx(wanted.item(), rel=1e-5)


SETTINGS = {"architecture": "bilstm", "hidden": 5, "classifier": 7, "embeddings": "trained"}


def test_a_batch_trains_the_shared_part_and_its_own_head_alone() -> None:
    settings = student_settings(SETTINGS | {"dropout": 0.1, "max_words": 9})
    configs = [StudentConfig(20, 4, settings, pair, ["a", "b"]) for pair in (False, True, False)]
    model = JointNetwork(map(StudentNetwork, configs))
    names = [name for name, _ in model.named_parameters()]
    assert len(names) == len(model.state_dict()) == len(StudentNetwork(configs[0]).state_dict()) + 8
    ids, lengths = torch.tensor([[2, 5, 3]]), torch.tensor([3])
    single, pair, _ = model.students
    pair(ids, lengths, ids, lengths)["logits"].sum().backward()
    trained = {name for name, p in model.named_parameters() if p.grad is not None}
    assert trained == {n for n in names if n.startswith("shared.") or n.startswith("heads.1.")}
    assert single.encoder is pair.encoder
    assert model.train() is model and all(s.training for s in model.students)
    model.eval()
    assert not any(part.training for s in model.students for part in s.modules())


def test_words_are_those_of_all_tasks_with_their_unlabelled_texts(layout: Layout, tmp_path: Path) -> None:
    params, own = make_params({}, {}), Layout(tmp_path / "data")
    shutil.copytree(layout.data, own.data)
    before = write_joint_vocabulary(params, "mtl", own)
    train, texts = own.split(SENTIMENT, "train"), ["zebras okapis"]
    columns = {"key": pa.array(string_keys(texts)), "label": pa.nulls(1, pa.int32())}
    write_rows(unlabelled_folder(train), pa.table(columns | text_columns(texts, "")))
    assert write_joint_vocabulary(params, "mtl", own) == before + 2
    assert 2 < write_joint_vocabulary(make_params({}, {"tasks": {WARMTH: "original"}}), "mtl", own) < before + 2


def test_a_finished_training_is_found_by_content(
    make: MakeRow, layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = {"epochs": 1}
    train(make(short), layout, ignore)
    first = sha256_folder(layout.joint_students("mtl", 1))
    monkeypatch.setattr(JointTraining, "prepare", None)
    train(make(short), layout, ignore)
    assert sha256_folder(layout.joint_students("mtl", 1)) == first
    params = make_params(short, {}).model_copy(deep=True)
    params.joint["another"] = params.joint["mtl"]
    write_joint_vocabulary(params, "another", layout)
    train(joint_row(params, "another", layout, "cpu"), layout, ignore)
    assert sha256_folder(layout.joint_students("another", 1)) == first
    keys = {first_of(make(short, **own)).result.key for own in ({}, {"start": "random"})}
    keys |= {first_of(make(short, tasks={WARMTH: "original"})).result.key}
    keys |= {make(short).spec(2, 0.01).result.key, first_of(make()).result.key}
    assert len(keys) == 5


def test_a_kill_loses_nothing(make: MakeRow, layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = make({"epochs": 1, "evaluate_every": 10})
    train(row, layout, ignore)
    whole = sha256_folder(layout.joint_students("mtl", 1))
    killed_and_resumed(partial(train, row, layout), 13, tmp_path / "another", monkeypatch)
    assert sha256_folder(layout.joint_students("mtl", 1)) == whole


@pytest.fixture
def plans(ended: Layout) -> Callable[[str, str], Any]:
    """Return the maker of plans that start from the joint training's students."""
    params = make_params({"epochs": 1, "learning_rates": [1.0e-12]}, {})
    return partial(make_plan, params, layout=ended)


def student_of(plan: Any, ended: Layout, tmp_path: Path) -> Student:
    dev, words = ended.split(plan.task, "dev"), tmp_path / "none"
    row = student_row(plan, words, dev, [1], "cpu")
    [(spec, _)] = train_rows([row], LocalEngine(1))[plan.method].trainings.values()
    return load_student(spec.result.folder)


@pytest.mark.parametrize(("task", "texts"), [(SENTIMENT, DEV_TEXTS), (WARMTH, DEV_PAIRS)])
def test_tuning_starts_where_the_joint_training_ended(
    plans: Callable[..., Any], ended: Layout, tmp_path: Path, task: str, texts: Any
) -> None:
    plan = plans(task, "tuned")
    assert plan.encoder is None and list(plan.students) == [1, 2]
    # At a rate of next to nothing: encoder and head are those of the start, in the labels' unit.
    tuned = student_of(plan, ended, tmp_path).logits(texts)
    start = load_student(ended.joint_student("mtl", 1, task)).logits(texts)
    np.testing.assert_allclose(tuned, start, rtol=1e-4, atol=1e-4)
    assert np.ptp(start[:, 0]) > 0.3


def test_a_student_is_selected_by_its_loss_before_its_decision_is_moved(ended: Layout, tmp_path: Path) -> None:
    optimiser = {"epochs": 4, "learning_rates": [5.0e-2, 1.0e-3], "select": "loss"}
    plan = make_plan(make_params(optimiser, {}), SENTIMENT, "tuned", ended)
    plan = plan.model_copy(update={"threshold": "dev"})
    row = student_row(plan, tmp_path / "none", ended.split(SENTIMENT, "dev"), [1], "cpu")
    encode_sets([row], LocalEngine(1))
    searched = train_rows([row], LocalEngine(1))["tuned"]
    [(spec, record)] = searched.trainings.values()
    losses = {rate: one.best_dev_loss for rate, one in searched.by_rate.items()}
    assert searched.rate == min(losses, key=losses.__getitem__)
    assert record.best_dev_loss == min(one.dev_loss for one in record.history)
    # By the metric, which is already 1, the first evaluation would be kept.
    first = record.history[0]
    assert first.dev == 1.0 and record.best_step > first.step
    outputs = load_student(spec.result.folder).logits(DEV_TEXTS) + np.array(record.threshold_shift)
    labels = np.array([label for label, _ in DEV])
    assert record.best_dev_loss == pytest.approx(log_losses(labels, outputs).mean(), rel=1e-4)


def test_a_tuned_student_depends_on_its_own_seeds_start_alone(
    plans: Callable[..., Any], ended: Layout, tmp_path: Path
) -> None:
    plan = plans(SENTIMENT, "tuned")
    dev = ended.split(SENTIMENT, "dev")

    def keys(own: Any) -> list[str]:
        row = student_row(own, tmp_path, dev, [1, 2], "cpu")
        return [row.spec(seed, 0.01).result.key for seed in (1, 2)]

    moved = plan.students | {2: plan.students[2].model_copy(update={"digest": "0" * 64})}
    place = {1: plan.students[1].model_copy(update={"folder": "elsewhere"}), 2: moved[2]}
    before, after = keys(plan), keys(plan.model_copy(update={"students": moved}))
    assert before[0] == after[0] and before[1] != after[1]
    assert keys(plan.model_copy(update={"students": place})) == after
    assert before[0] != before[1]
    with pytest.raises(PotstillError, match="its start has the seeds 1, 2, not 3"):
        plan.student_start(3)


def test_a_model_that_has_changed_since_is_not_started_from(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    model = ModelReference.to(tmp_path)
    assert model.open() == tmp_path
    (tmp_path / "config.json").write_text("{ }")
    with pytest.raises(PotstillError, match="it was changed while students were trained"):
        model.open()
