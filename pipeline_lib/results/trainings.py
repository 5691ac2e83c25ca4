"""What the records in the models' folders say of all trainings: learning curves, processors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, Tuning
from pipeline_lib.shards.training_records import SEED, ModelRecord, TrainingRecord

Curve = dict[str, Any]
"""``system``, ``kind`` (teacher, method, joint, encoder), ``seed``, ``measure`` and ``history``: a list of step, epoch,
mean training loss since the last evaluation, score on dev, and ``dev_loss`` if the lowest one was kept."""


def task_curves(params: Params, task: str, layout: Layout) -> list[Curve]:
    """Return the curves of the task's teachers, of the methods by seed, and of joint students."""
    metric = params.task(task).metrics[0]
    curves = [
        _curve(layout.teacher(task, name), name, "teacher", SEED, metric)
        for name, teacher in params.teachers_of(task).items()
        if isinstance(teacher.tuning, Tuning)
    ]
    for name in params.methods_of(task):
        for seed in params.seeds:
            curves.append(_curve(layout.student(task, name, seed), name, "method", seed, metric))
    curves += _joint(params, task, layout, metric)
    return [curve for curve in curves if curve is not None]


def encoder_curves(params: Params, layout: Layout) -> list[Curve]:
    """Return the curves of the encoders, which are trained without a task."""
    curves = (_curve(layout.encoder(name), name, "encoder", SEED, "loss") for name in params.encoders)
    return [curve for curve in curves if curve is not None]


def _joint(params: Params, task: str, layout: Layout, metric: str) -> Iterator[Curve | None]:
    for name, joint in params.joint.items():
        if task in joint.tasks:
            for seed in params.seeds:
                folder = layout.joint_students(name, seed)
                yield _curve(folder, name, "joint", seed, metric, task)


def _curve(folder: Path, system: str, kind: str, seed: int, measure: str, task: str | None = None) -> Curve | None:
    """Return the curve of one run, or None if its folder has none.

    :param task: for joint training, the task whose score is used.
    """
    try:
        record = TrainingRecord.read(folder / "training.json")
    except PotstillError:
        # The teacher's answers are in files, or it was fine-tuned elsewhere.
        return None
    evaluations = [one if task is None else one.of_task(task) for one in record.history]
    history = [
        {
            "step": one.step,
            "epoch": one.epoch,
            "loss": round(one.loss, 6),
            "dev": round(one.dev, 6),
            **({} if one.dev_loss is None else {"dev_loss": round(one.dev_loss, 6)}),
        }
        for one in evaluations
    ]
    rate = record.settings.learning_rate
    names = {"system": system, "kind": kind, "seed": seed, "measure": measure}
    return names | {"best_step": record.best_step, "learning_rate": rate, "history": history}


def computed_on(params: Params, layout: Layout) -> list[str]:
    """Return the processors and torch versions that the records of trained models name."""
    folders = [layout.teacher(t, name) for t in params.tasks for name in params.teachers_of(t)]
    folders += [
        layout.student(task, method, seed)
        for task in params.tasks
        for method in params.methods_of(task)
        for seed in params.seeds
    ]
    folders += [layout.encoder(name) for name in params.encoders]
    machines = set()
    for folder in folders:
        try:
            machines.add(ModelRecord.read(folder / "training.json").computed_on)
        except PotstillError:
            continue
    return sorted(machines - {None})
