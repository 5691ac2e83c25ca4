"""What the records in the models' folders say of all trainings: learning curves, processors."""

from contextlib import suppress
from itertools import product
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
        _curve(layout.teacher(task, name), name, "teacher", teacher.tuning.seed, metric)
        for name, teacher in params.teachers_of(task).items()
        if isinstance(teacher.tuning, Tuning)
    ]
    for name, seed in product(params.methods_of(task), params.seeds):
        curves.append(_curve(layout.student(task, name, seed), name, "method", seed, metric))
    joint = (name for name, row in params.joint.items() if task in row.tasks)
    for name, seed in product(joint, params.seeds):
        curves.append(_curve(layout.joint_students(name, seed), name, "joint", seed, metric, task))
    return [curve for curve in curves if curve is not None]


def encoder_curves(params: Params, layout: Layout) -> list[Curve]:
    """Return the curves of the encoders, which are trained without a task."""
    curves = (_curve(layout.encoder(name), name, "encoder", SEED, "loss") for name in params.encoders)
    return [curve for curve in curves if curve is not None]


def _curve(folder: Path, system: str, kind: str, seed: int, measure: str, task: str | None = None) -> Curve | None:
    """Return the curve of one run, or None if its folder has none; of a joint training, that of a task."""
    try:
        record = TrainingRecord.read(folder / "training.json")
    except PotstillError:
        # The teacher's answers are in files, or it was fine-tuned elsewhere.
        return None
    history = []
    for look in record.history if task is None else [look.of_task(task) for look in record.history]:
        numbers = {"loss": look.loss, "dev": look.dev} | ({} if look.dev_loss is None else {"dev_loss": look.dev_loss})
        history.append({"step": look.step, "epoch": look.epoch} | {n: round(value, 6) for n, value in numbers.items()})
    names = {"system": system, "kind": kind, "seed": seed, "measure": measure, "best_step": record.best_step}
    return names | {"learning_rate": record.settings.learning_rate, "history": history}


def computed_on(params: Params, layout: Layout) -> list[str]:
    """Return the processors and torch versions that the records of trained models name."""
    folders = [layout.teacher(task, name) for task in params.tasks for name in params.teachers_of(task)]
    for task in params.tasks:
        folders += [layout.student(task, *key) for key in product(params.methods_of(task), params.seeds)]
    folders += [layout.encoder(name) for name in params.encoders]
    machines = set()
    for folder in folders:
        with suppress(PotstillError):
            machines.add(ModelRecord.read(folder / "training.json").computed_on)
    return sorted(machines - {None})
