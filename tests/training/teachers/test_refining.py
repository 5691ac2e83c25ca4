"""Teachers of one task, and refined ones: several tasks on one encoder, a teacher for each."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file
from transformers import BertModel

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json
from pipeline_lib.base.kinds import KINDS, score
from pipeline_lib.base.kinds.calibration import log_losses
from pipeline_lib.base.processor import computed_on
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.models.teacher import digest_model
from pipeline_lib.params import FineTuning, Probe, Refining, Task
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import SetReference
from pipeline_lib.shards.training_records import TasksRecord, TunedTeacherRecord
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.training.linear import draw_folds
from pipeline_lib.training.runs import train_or_find
from pipeline_lib.training.search import TrainingRow, train_rows
from pipeline_lib.training.teachers.finetuning import Data, ProbeTraining, TeacherTask, TeacherTraining
from pipeline_lib.training.teachers.probing import PENALTIES, TO_START, fit_probe
from pipeline_lib.training.teachers.refining import ENCODER, HEAD, RefinedTraining, SharedClassifiers, with_answers
from tests.kit import shard_files
from tests.kit.kills import killed_and_resumed
from tests.kit.made_up import made_up_task, task_of_labels
from tests.pipeline.corpus import sentences, write_encoder

pytestmark = pytest.mark.usefixtures("store_home")
CPU = torch.device("cpu")
TASKS = ("moods", "warmth")
SETTINGS = {
    **{"kind": "refined", "learning_rates": [3e-3], "epochs": 6, "batch_size": 16},
    **{"freeze_embeddings": False, "precision": "float32", "ranking": {}},
}


def write_set(folder: Path, columns: dict[str, pa.Array]) -> SetReference:
    table = pa.table({"key": pa.array(range(len(columns["label"])), pa.uint64()), **columns})
    shard_files.write_set(folder, "prepared", {"s0.arrow": table})
    return SetReference.to(folder)


def classes(rows: Sequence[tuple[int, str]]) -> dict[str, pa.Array]:
    labels, texts = zip(*rows, strict=True)
    return {"label": pa.array(labels, pa.int32()), "text": pa.array(texts)}


def scores(rows: Sequence[tuple[int, str]]) -> dict[str, pa.Array]:
    """Return pairs of sentences, whose score from 10 to 40 grows with the good ones among them."""
    firsts, seconds = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    labels = [10 + 20 * one + 10 * two for (one, _), (two, _) in zip(firsts, seconds, strict=True)]
    return {
        "label": pa.array(labels, pa.float32()),
        "text": pa.array([text for _, text in firsts]),
        "text_2": pa.array([text for _, text in seconds]),
    }


def warmth_task() -> Task:
    given = made_up_task().model_dump() | {"kind": "regression", "metrics": ["pearson"]}
    given |= {"text": ["first", "second"], "labels": {"min": 10.0, "max": 40.0}}
    return Task.model_validate(given)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refining")
    write_encoder(folder / "base")
    for split, rows in sentences().items():
        write_set(folder / "moods" / split, classes(rows))
        write_set(folder / "warmth" / split, scores(rows))
        write_set(folder / "answers" / split, answers(rows))
        write_set(folder / "marks" / split, marks(rows))
    return folder


def answers(rows: Sequence[tuple[int, str]]) -> dict[str, pa.Array]:
    """Return questions with one right and one wrong answer each: the good film and the bad one."""
    good, bad = ([text for label, text in rows if label == own] for own in (1, 0))
    questions = [text.replace(".", " [UNK].") for text in good]
    return {
        "label": pa.array([1] * len(good) + [0] * len(bad), pa.int32()),
        "text": pa.array(questions + questions),
        "text_2": pa.array(good + bad),
    }


def make(data: Path, names: Sequence[str] = TASKS, rate: float = 3e-3, **changes: Any) -> Any:
    pairs = {"text": ["question", "answer"]}
    settings = {"moods": made_up_task(), "warmth": warmth_task(), "answers": made_up_task(**pairs)}
    settings["marks"] = task_of_labels(label=["good", "short"], labels={"good": ["1"], "short": ["1"]})
    tasks = {}
    for name in names:
        train, dev = (SetReference.to(data / name / split) for split in ("train", "dev"))
        tasks[name] = TeacherTask(train, dev, settings[name])
    params = Refining.model_validate(SETTINGS | changes)
    ranked = with_answers("refined", tasks, params.ranking)
    return RefinedTraining(data / "base", ranked, params, 32, rate, "cpu", "float32")


def train(training: RefinedTraining, folder: Path, on_step: Callable[..., None] = lambda *_: None) -> TasksRecord:
    """Train or find; write the tasks' teachers below ``folder``, and return the record."""
    row = TrainingRow("refined", [training.rate], [training.seed], lambda _, __: training)
    found = train_rows([row], LocalEngine(1), lambda _, message: on_step(*message))["refined"]
    [(training, record)] = found.trainings.values()
    training.write({task: folder / task for task in training.tasks}, record)
    return record


def test_each_task_gets_a_teacher_that_has_learnt(data: Path, tmp_path: Path) -> None:
    training = make(data)
    record = train(training, tmp_path)
    best, curves, rows = {}, [], []
    for task in TASKS:
        own = training.tasks[task].task
        teacher = load_teacher(tmp_path / task, "cpu", "float32")
        assert teacher.label_names == own.label_names
        dev = Data.read(data / task / "dev")
        outputs = teacher.predict(dev.texts, 32, 4096)
        best[task] = score(own.metrics[0], dev.labels, outputs)
        rows.append(len(dev.texts))
        told = read_json(tmp_path / task / "training.json")
        assert told["best_dev"] == pytest.approx(best[task], abs=1e-6)
        assert told["metric"] == own.metrics[0] and told["training_agreement"] > 0.8
        assert told["parameters"]["with_embeddings"] == teacher.parameters(embeddings=True)
        curves.append([entry["dev"] for entry in told["history"]])
        if own.kind == "regression":
            # In the labels' unit: a constant guess errs by a deviation of 11.
            assert np.abs(outputs[:, 0] - dev.labels).mean() < 6
    assert best["moods"] > 0.9 and best["warmth"] > 0.8
    assert record.best_dev == pytest.approx(np.average([*best.values()], weights=rows), abs=1e-6)
    assert record.best_dev == pytest.approx(max(np.average(curves, axis=0, weights=rows)))
    # What the tasks share is stored once.
    moods, warmth = (tmp_path / task for task in TASKS)
    assert (moods / ENCODER).stat().st_ino == (warmth / ENCODER).stat().st_ino
    assert (moods / HEAD).stat().st_ino != (warmth / HEAD).stat().st_ino
    assert (moods / HEAD).stat().st_size < (moods / ENCODER).stat().st_size / 50
    assert digest_model(moods) != digest_model(warmth) and training.result.is_whole()
    (training.result.folder / "1" / HEAD).unlink()
    assert not training.result.is_whole()


def test_one_encoder_is_trained_by_all_tasks(data: Path) -> None:
    run = make(data).prepare()
    names = [name for name, _ in run.model.named_parameters()]
    assert sum(name.endswith("word_embeddings.weight") for name in names) == 1
    # So does a checkpoint hold it once.
    assert set(run.model.state_dict()) == set(names)
    for task in TASKS:
        run.model.zero_grad()
        batches = map(run.batches.collate, run.batches.epoch(0))
        run.loss(run.model, next(batch for batch in batches if batch["task"] == task)).backward()
        own, other = (run.model.heads[number] for number in (TASKS.index(task), 1 - TASKS.index(task)))
        assert all(p.grad.abs().sum() > 0 for p in own.parameters())
        assert all(p.grad is None for p in other.parameters())
        encoder = [p.grad for name, p in run.model.encoder.named_parameters() if "query" in name]
        assert all(grad.abs().sum() > 0 for grad in encoder)


def test_modes_and_frozen_embeddings(data: Path) -> None:
    model = make(data, freeze_embeddings=True).prepare().model
    fixed = [name for name, p in model.named_parameters() if not p.requires_grad]
    assert fixed == ["encoder.embeddings.word_embeddings.weight"]
    model = make(data).prepare().model
    for mode in (True, False):
        model.train(mode)
        parts = [part for own in model.classifiers for part in own.modules()]
        assert {part.training for part in parts} == {mode}
    # An encoder that cannot be shared.
    with pytest.raises(PotstillError, match="BertModel: no encoder that several tasks could"):
        SharedClassifiers([BertModel.from_pretrained(data / "base")])


def test_what_determines_it(data: Path) -> None:
    training = make(data)
    # Tasks of other names, but of the same content, are found.
    renamed = replace(training, tasks={f"other_{name}": own for name, own in training.tasks.items()})
    same = [training.result.key, make(data).result.key, renamed.result.key]
    assert len(set(same)) == 1
    others = [
        make(data, select="loss"),
        make(data, freeze_embeddings=True),
        make(data, rate=1e-3),
        make(data, TASKS[::-1]),
        make(data, TASKS[:1]),
        make(data, ["answers"]),
        make(data, ["answers"], ranking={"answers": "yes"}),
        make(data, ["answers"], ranking={"answers": "no"}),
        replace(make(data), max_length=16),
    ]
    assert len({*same, *(other.result.key for other in others)}) == 1 + len(others)


def test_killed_it_resumes_to_the_same_bytes(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = make(data, epochs=1)
    whole = train(training, tmp_path / "whole")
    killed_and_resumed(partial(train, training, tmp_path / "killed"), 12, tmp_path / "another", monkeypatch)
    assert train(training, tmp_path / "killed").history == whole.history
    for task in TASKS:
        assert digest_model(tmp_path / "whole" / task) == digest_model(tmp_path / "killed" / task)


def test_ranked_answers_are_learnt_as_classes(data: Path, tmp_path: Path) -> None:
    training = make(data, ["answers"], ranking={"answers": "yes"}, epochs=8)
    batch = training.prepare().batches.parts["answers"]
    assert {batch.collate(rows)["candidates"] for rows in batch.epoch(0)} == {2}
    record = train(training, tmp_path)
    dev = Data.read(data / "answers" / "dev")
    outputs = load_teacher(tmp_path / "answers", "cpu", "float32").predict(dev.texts, 32, 4096)
    assert score("accuracy", dev.labels, outputs) > 0.8
    assert [own["metric"] for own in record.by_task] == ["accuracy"]


def test_what_cannot_be_ranked(data: Path) -> None:
    for ranking, message in (
        ({"films": "yes"}, r"ranking\.films: no such task; there are moods, warmth, answers"),
        ({"moods": "yes"}, r"ranking\.moods: only a task of pairs"),
        ({"warmth": "label"}, r"ranking\.warmth: only a task of pairs"),
        ({"answers": "right"}, r"ranking\.answers: no label 'right'; there are no, yes"),
    ):
        with pytest.raises(PotstillError, match=message):
            make(data, [*TASKS, "answers"], ranking=ranking)


def single(data: Path, task: str, **changes: Any) -> TeacherTraining:
    """Return the training of one task's teacher; keyword arguments replace settings."""
    refined = make(data, [task])
    settings = {**SETTINGS, "kind": "single", **changes}
    tuning = FineTuning.model_validate({name: value for name, value in settings.items() if name != "ranking"})
    return TeacherTraining(data / "base", refined.tasks, tuning, 32, 3e-3, "cpu", "float32")


def test_a_teacher_of_one_task_is_a_model_like_any_other(data: Path, tmp_path: Path) -> None:
    training = single(data, "warmth", epochs=20)
    record = train_or_find(training, lambda _: None)
    training.result.link_into(tmp_path)
    assert isinstance(record, TunedTeacherRecord) and record.best_dev > 0.7
    assert record.training_agreement > 0.8 and record.max_length == 32 and record.computed_on == computed_on("cpu")
    assert (tmp_path / "model.safetensors").exists()
    dev = Data.read(data / "warmth" / "dev")
    outputs = load_teacher(tmp_path, "cpu", "float32").predict(dev.texts, 32, 4096)
    # In the labels' unit: a constant guess errs by a deviation of 11.
    assert np.abs(outputs[:, 0] - dev.labels).mean() < 6


def marks(rows: Sequence[tuple[int, str]]) -> dict[str, pa.Array]:
    """Return texts with two labels: a good film, and a short text."""
    values = [[label, int(len(text) < 40)] for label, text in rows]
    return {"label": pa.array(values, pa.list_(pa.uint8(), 2)), "text": pa.array([text for _, text in rows])}


@pytest.mark.parametrize("task", ["moods", "warmth", "marks"])
def test_a_probe_is_a_teacher_or_where_one_starts(data: Path, task: str) -> None:
    started = single(data, task, head="probe", epochs=1, seed=3)
    probe = ProbeTraining(data / "base", started.tasks, Probe(kind="probe"), 32, 0.0, "cpu", "float32")
    record = train_or_find(probe, lambda _: None)
    teacher, dev = load_teacher(probe.result.folder, "cpu", "float32"), Data.read(data / task / "dev")
    outputs = teacher.predict(dev.texts, 32, 4096)
    assert record.best_dev == pytest.approx(score(record.metric, dev.labels, outputs), abs=1e-6)
    assert record.best_dev > 0.25 and record.training_agreement > 0.25
    assert "by cross-validation on train" in record.selection and (record.steps, record.best_step) == (1, 1)
    # Rows held out by a probe are not answered by it, and both first answers are better than a guess.
    first = probe.taught().first_answers(1)
    assert [*first] == ["mean states", "mean word pieces"] and all(0.25 < value < 1.0 for value in first.values())
    # The encoder stays as it is; a probe and what starts from it are trainings of their own.
    base, tensors = (load_file(folder / "model.safetensors") for folder in (data / "base", probe.result.folder))
    assert tensors.keys() == base.keys() and all(torch.equal(tensors[name], base[name]) for name in base)
    before = started.prepare().model.state_dict()
    assert torch.equal(before["classifier.weight"], single_probe(data, started)) and started.seed == 3
    keys = [run.result.key for run in (probe, started, single(data, task, epochs=1, seed=3), single(data, task))]
    assert len({*keys}) == 4
    after = load_teacher(train_or_find(started, lambda _: None) and started.result.folder, "cpu", "float32")
    assert not torch.equal(after.model.state_dict()["classifier.weight"], before["classifier.weight"])


def single_probe(data: Path, training: TeacherTraining) -> torch.Tensor:
    """Return the weights of a training's probe, in the unit in which it learns."""
    taught = training.taught()
    taught.probe(training.seed, TO_START)
    return taught.teacher.model.classifier.weight


def test_a_penalty_is_chosen_on_rows_held_out() -> None:
    draw = np.random.default_rng(0)
    labels = np.array([0, 1] * 30 + [2])
    noise, tell = draw.normal(size=(61, 40)), np.eye(3)[labels] @ draw.normal(size=(3, 40))
    clear, noisy = (
        fit_probe(vectors.astype(np.float32), labels, KINDS["classification"], 3, 1, PENALTIES)
        for vectors in (noise / 50 + tell, noise)
    )
    assert clear.penalty < noisy.penalty and clear.loss < 0.1 < noisy.loss
    assert np.isnan(clear.held_out[-1]).all() and (clear.held_out[:-1].argmax(1) == labels[:-1]).all()
    # The one row of a class is never held out, and of each other a fifth is.
    folds = draw_folds(labels, True, 1)
    assert folds[-1] == -1 and {tuple(np.bincount(folds[labels == each])) for each in (0, 1)} == {(6,) * 5}


def test_the_last_step_can_be_taken(data: Path) -> None:
    record = train_or_find(single(data, "moods", epochs=3, select="last"), lambda _: None)
    [look] = record.history
    assert record.best_step == record.steps == look.step and look.epoch == 3 and record.selection == "the last step"
    assert record.best_dev == look.dev and record.best_dev_loss is None


def test_teachers_of_one_task_select_by_loss(data: Path, tmp_path: Path) -> None:
    training = single(data, "moods", epochs=3, select="loss")
    record = train_or_find(training, lambda _: None)
    dev = Data.read(data / "moods" / "dev")
    teacher = load_teacher(training.result.folder, "cpu", "float32")
    expected = log_losses(dev.labels, teacher.predict(dev.texts, 32, 4096)).mean()
    assert record.best_dev_loss == pytest.approx(expected, rel=1e-4)
    assert record.best_dev_loss == min(one.dev_loss for one in record.history)
    assert record.selection == "evaluation whose loss is lowest on dev"
    # Batches of one task are not mixed.
    run = single(data, "moods", freeze_embeddings=True).prepare()
    assert type(run.batches) is LengthSorted
    fixed = [name for name, p in run.model.named_parameters() if not p.requires_grad]
    assert fixed == ["bert.embeddings.word_embeddings.weight"]
