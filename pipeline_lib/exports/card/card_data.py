"""What is known about a trained student for its users: its row and what that refers to, scores and training."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from ruamel.yaml import YAML

from pipeline_lib.base.layout import StudentPlace, student_place
from pipeline_lib.models.folders import temperature_of
from pipeline_lib.models.students.student import Student
from pipeline_lib.params import Encoder, Method, ModelVectors, Params, SentenceVectors, load_params
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


def settings_of(facts: Facts) -> str:
    """Return the rows that define a student whose row is known, as in its params.yaml."""
    params, task, method = facts.row.params, facts.place.task, facts.place.method
    names = [method, *params.rows_before(method)]
    names += [base for name in names if (base := params.methods[name].baseline) in params.methods]
    methods = {name: params.methods[name] for name in names}
    starts = {row.start for row in methods.values()}
    encoders = {name: row for name, row in params.encoders.items() if name in starts}
    joint = {name: row for name, row in params.joint.items() if name in starts}
    trained = [*methods.values(), *encoders.values(), *joint.values()]
    tasks = dict.fromkeys([task, *(name for row in joint.values() for name in row.tasks)])
    taught = [row for row in trained if not hasattr(row, "wikipedia")]
    students, teachers = {row.student for row in trained}, {params.teacher_of(t, row) for row in taught for t in tasks}
    # Whether some student starts from an encoder that was trained on sentence vectors.
    has_vectors = any(isinstance(row, Encoder) for row in encoders.values())
    models = {params.teachers[name].model for name in teachers}
    models |= {params.students[name].source_model for name in students}
    vectors = [params.vocabulary.vectors, *([params.sentence_vectors] if has_vectors else [])]
    models |= {source.model for source in vectors if isinstance(source, ModelVectors | SentenceVectors)}
    named = {
        "tasks": tasks,
        "transfer": {row.data for row in methods.values()}.union(*(row.tasks.values() for row in joint.values())),
        "teachers": teachers,
        "students": students,
        "optimisers": {row.optimiser for row in trained},
        "models": models,
    }
    groups = {
        group: {name: row for name, row in getattr(params, group).items() if name in chosen}
        for group, chosen in named.items()
    } | {"encoders": encoders, "joint": joint, "methods": methods}
    shown: dict[str, Any] = {
        group: {name: _settings(row) for name, row in rows.items()} for group, rows in groups.items() if rows
    }
    for section in ("vocabulary", *(["sentence_vectors"] if has_vectors else []), "tagger", "precompute"):
        shown[section] = _settings(getattr(params, section))
    return _yaml(shown | {"seeds": params.seeds})


def _settings(row: BaseModel) -> dict[str, Any]:
    return row.model_dump(mode="json", exclude_unset=True)


def _yaml(values: dict[str, Any]) -> str:
    yaml, text = YAML(typ="safe", pure=True), io.StringIO()
    yaml.sort_base_mapping_type_on_output = False
    yaml.default_flow_style, yaml.width = None, 1000
    yaml.dump(values, text)
    return text.getvalue()
