"""Gathers what is known about a trained student for its users: its row, scores and training."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_lib.base.files import read_json
from pipeline_lib.base.layout import StudentPlace, student_place
from pipeline_lib.evaluation.results import MethodScores, TaskScores, TeacherScores
from pipeline_lib.params import Method, Params, Task, load_params
from pipeline_lib.report.collect import TaskResult, read_speed
from pipeline_lib.students.folders import temperature_of
from pipeline_lib.students.student import Student


@dataclass(frozen=True)
class Row:
    """The row of params.yaml that a student belongs to; ``teacher`` is the teacher's name."""

    params: Params
    task: Task
    method: Method
    teacher: str


@dataclass(frozen=True)
class Facts:
    """What is known about a student; unknown parts are None.

    :ivar folder: the student's folder; :ivar place: which student it is, according to its path.
    :ivar row: None outside a workspace, and if its params.yaml no longer has the row.
    :ivar result: the task's scores and timings, reduced to its teacher, its baseline and its row.
    :ivar training: the content of ``training.json``; empty if there is none.
    """

    folder: Path
    student: Student
    temperature: float
    place: StudentPlace | None
    row: Row | None
    result: TaskResult | None
    training: dict[str, Any]

    @property
    def is_regression(self) -> bool:
        """Whether it gives a score rather than classes."""
        return len(self.student.label_names) == 1

    @property
    def own(self) -> MethodScores | None:
        """The scores of its row."""
        return None if self.result is None else self.result.scores.methods[self.place.method]

    @property
    def teacher(self) -> TeacherScores | None:
        """The scores of its teacher."""
        return None if self.own is None else self.result.scores.teachers[self.own.teacher]


def read_facts(folder: Path, student: Student) -> Facts:
    """Gather what is known about the student in ``folder``.

    :raises DistilleryError: if params.yaml, or the scores of its task, are damaged.
    """
    place, record = student_place(folder), folder / "training.json"
    return Facts(
        folder,
        student,
        temperature_of(folder),
        place,
        None if place is None else _row(place),
        None if place is None else _result(place),
        read_json(record) if record.exists() else {},
    )


def _row(place: StudentPlace) -> Row | None:
    path = place.layout.data.parent / "params.yaml"
    if not path.exists():
        return None
    params = load_params(path)
    if place.task not in params.tasks or place.method not in params.methods_of(place.task):
        return None
    method = params.methods[place.method]
    return Row(params, params.tasks[place.task], method, params.teacher_of(place.task, method))


def _result(place: StudentPlace) -> TaskResult | None:
    path = place.layout.scores(place.task)
    if not path.exists():
        return None
    scores = TaskScores.read(path)
    own = scores.methods.get(place.method)
    if own is None or str(place.seed) not in own.training.best_step:
        return None
    lines = [name for name in scores.methods if name in (own.baseline, place.method)]
    kept = {
        "teachers": {own.teacher: scores.teachers[own.teacher]},
        "methods": {name: scores.methods[name] for name in lines},
    }
    speed = read_speed(place.layout, place.task)
    return TaskResult(place.task, scores.model_copy(update=kept), speed)
