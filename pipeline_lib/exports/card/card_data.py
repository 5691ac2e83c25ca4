"""What is known about a trained student for its users: its row, scores and training."""

from dataclasses import dataclass
from pathlib import Path

from pipeline_lib.base.layout import StudentPlace, student_place
from pipeline_lib.models.folders import temperature_of
from pipeline_lib.models.students.student import Student
from pipeline_lib.params import Method, Params, load_params
from pipeline_lib.results.collect import TaskResult, read_speed
from pipeline_lib.results.schema import MethodScores, TaskScores, TeacherScores
from pipeline_lib.shards.training_records import StudentRecord


@dataclass(frozen=True)
class CardRow:
    """The row of params.yaml that a student belongs to; ``teacher`` is the teacher's name."""

    params: Params
    method: Method
    teacher: str


@dataclass(frozen=True)
class Facts:
    """What is known about a student; what is unknown is None.

    :ivar place: which student it is, according to its folder's path.
    :ivar row: None outside a workspace, and if its params.yaml no longer has the row.
    :ivar result: the task's scores and timings, reduced to its teacher, its baseline and its row.
    """

    folder: Path
    student: Student
    temperature: float
    place: StudentPlace | None
    row: CardRow | None
    result: TaskResult | None
    training: StudentRecord | None

    @property
    def own(self) -> MethodScores | None:
        """The scores of its row."""
        return None if self.result is None else self.result.scores.methods[self.place.method]

    @property
    def teacher(self) -> TeacherScores | None:
        """The scores of its teacher."""
        return None if self.own is None else self.result.scores.teachers[self.own.teacher]


def read_facts(folder: Path, student: Student) -> Facts:
    """Gather what is known about the student in ``folder``."""
    location, record = student_place(folder), folder / "training.json"
    return Facts(
        folder,
        student,
        temperature_of(folder),
        location,
        None if location is None else _row(location),
        None if location is None else _result(location),
        StudentRecord.read(record) if record.exists() else None,
    )


def _row(location: StudentPlace) -> CardRow | None:
    path = location.layout.data.parent / "params.yaml"
    if not path.exists():
        return None
    params = load_params(path)
    if location.task not in params.tasks or location.method not in params.methods_of(location.task):
        return None
    method = params.methods[location.method]
    return CardRow(params, method, params.teacher_of(location.task, method))


def _result(location: StudentPlace) -> TaskResult | None:
    path = location.layout.scores(location.task)
    if not path.exists():
        return None
    scores = TaskScores.read(path)
    method = scores.methods.get(location.method)
    if method is None or str(location.seed) not in method.training.best_step:
        return None
    teachers = {method.teacher: scores.teachers[method.teacher]}
    methods = {name: row for name, row in scores.methods.items() if name in (method.baseline, location.method)}
    reduced = scores.model_copy(update={"teachers": teachers, "methods": methods})
    return TaskResult(location.task, reduced, read_speed(location.layout, location.task))
