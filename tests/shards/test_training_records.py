"""Records of trainings: read by class, with one error that names the file and the key."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.shards.training_records import (
    JointRecord,
    ModelRecord,
    SearchRecord,
    StudentRecord,
    TasksRecord,
    TeacherRecord,
    TrainingRecord,
    TunedTeacherRecord,
    tuned_length,
)
from tests.kit.made_up import made_up_teacher, made_up_training

SCORES = [[0.5, 0.1], [0.9, 0.3], [0.7, 0.4]]


def of_tasks(**changes: Any) -> TasksRecord:
    """Return the record of a run of two tasks that was evaluated three times."""
    history = [
        {"step": step, "epoch": step / 10, "loss": 0.5, "dev": sum(scores), "dev_by_task": scores}
        for step, scores in zip((10, 20, 30), SCORES, strict=True)
    ]
    by_task = [{"rows_of_task": 3, "label_scale": None}, {"rows_of_task": 4, "label_scale": None}]
    fields = made_up_training(history=history, best_dev=1.2, rows=7, by_task=by_task)
    return TasksRecord(**fields | changes)


def by_loss() -> TasksRecord:
    losses = [{"dev_loss": 0.9, "dev_loss_by_task": [0.4, 0.5]}] * 3
    history = [one.model_dump(exclude_unset=True) | loss for one, loss in zip(of_tasks().history, losses, strict=True)]
    return of_tasks(history=history, best_dev_loss=0.9)


def test_readers_take_what_they_need(tmp_path: Path) -> None:
    path = tmp_path / "training.json"
    written = made_up_training() | made_up_teacher(best_dev_mean=0.8)
    TunedTeacherRecord(**written).write(path)
    # What was not set is left out, and numbers stay as they are.
    assert read_json(path) == written
    assert TeacherRecord.read(path).parameters["with_embeddings"] == 300
    assert TrainingRecord.read(path).settings.learning_rate == 0.002
    assert TunedTeacherRecord.read(path).best_dev_mean == 0.8
    assert ModelRecord.read(path).computed_on == "Fast CPU" and tuned_length(tmp_path) == 16
    with pytest.raises(PotstillError, match=r"training\.json: rows: Field required"):
        StudentRecord.read(path)
    # Unknown fields are not written.
    with pytest.raises(ValueError, match="rose"):
        StudentRecord(**made_up_training(rows=1, rose=2))
    # A search has nothing else.
    record = {"seed": 1, "learning_rate": 0.1, "best_dev_by_rate": {"0.1": float("nan")}}
    SearchRecord(**record).write(tmp_path / "search.json")
    assert SearchRecord.read(tmp_path / "search.json").learning_rate == 0.1
    write_json(tmp_path / "search.json", record | {"more": 1})
    with pytest.raises(PotstillError, match=r"search\.json: more"):
        SearchRecord.read(tmp_path / "search.json")
    # A folder may not say how much its teacher reads.
    assert tuned_length(tmp_path / "absent") is None
    write_json(tmp_path / "training.json", {"labels": ["no", "yes"]})
    assert tuned_length(tmp_path) is None
    # A record from before the loss could select is read.
    values = made_up_training()
    del values["settings"]["select"]
    write_json(tmp_path / "training.json", values)
    assert TrainingRecord.read(tmp_path / "training.json").settings.select == "metric"


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (made_up_training(settings={}), r"settings\.optimiser"),
        (made_up_training(best_step="the last"), "best_step"),
        (made_up_training(history=[{"step": 1}]), r"history\.0\.epoch"),
        ({}, "computed_on"),
        ([1], "the file"),
    ],
)
def test_a_damaged_record_is_named(tmp_path: Path, content: Any, key: str) -> None:
    write_json(tmp_path / "training.json", content)
    message = rf"training\.json: {key}: .*Delete it and run `distill run` to make it again"
    with pytest.raises(PotstillError, match=message):
        TrainingRecord.read(tmp_path / "training.json")


def test_records_of_tasks() -> None:
    student = of_tasks().of_task(1, StudentRecord)
    assert [one.dev for one in student.history] == [0.1, 0.3, 0.4]
    # The best evaluation is that of all tasks.
    assert (student.best_step, student.best_dev, student.rows_of_task) == (20, 0.3, 4)
    written = student.model_dump(exclude_unset=True)
    assert "by_task" not in written and "dev_by_task" not in written["history"][0]
    assert written["rows"] == 7
    # A joint row has the scores by the tasks names.
    record = of_tasks()
    students = {name: record.of_task(n, StudentRecord) for n, name in enumerate("ab")}
    joint = JointRecord.of(record, students)
    assert joint.best_dev_by_task == {"a": 0.9, "b": 0.3} and joint.best_dev == 1.2
    assert joint.rows_by_task == {"a": 3, "b": 4}
    assert joint.history[0].dev_by_task == {"a": 0.5, "b": 0.1}
    # A loss that selected is each tasks own.
    record = by_loss()
    students = {name: record.of_task(n, StudentRecord) for n, name in enumerate("ab")}
    assert students["b"].best_dev_loss == 0.5 and students["b"].best_dev == 0.3
    assert [one.dev_loss for one in students["a"].history] == [0.4] * 3
    joint = JointRecord.of(record, students)
    assert joint.best_dev_loss == 0.9 and joint.history[1].dev_loss_by_task == {"a": 0.4, "b": 0.5}
    assert joint.history[1].of_task("b") == students["b"].history[1]
    assert "dev_loss_by_task" not in JointRecord.of(
        of_tasks(), {name: of_tasks().of_task(n, StudentRecord) for n, name in enumerate("ab")}
    ).history[0].model_dump(exclude_unset=True)


@pytest.mark.parametrize(
    ("fields", "merit"),
    [
        ({"best_dev": 0.4}, 0.4),
        ({"best_dev": 0.4, "best_dev_loss": 2.0}, -2.0),
        ({"best_dev": float("nan")}, float("-inf")),
        ({"best_dev_loss": float("nan")}, float("-inf")),
    ],
)
def test_what_trainings_are_compared_by(fields: dict[str, float], merit: float) -> None:
    assert TrainingRecord(**made_up_training(**fields)).merit == merit
