"""Plans: a method's row with everything it refers to filled in.

That is its architecture, optimiser and objective, and the digests of the shard sets to train on and
of the models to start from: all that determines a student besides its seed, its vocabulary and the
dev set.  So a student is trained again exactly when its plan changes.
"""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.base.kinds import kind_of
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.fitting import check_beside, check_fits, check_positions, check_width
from pipeline_lib.params import STARTS, AnyOptimiser, AnyStudent, Method, Objective, Params, holds_students
from pipeline_lib.shards.shard_sets import SetReference, check_answers, read_manifest


class ModelReference(BaseModel):
    """A model to start from, pretrained or trained here, by path and its folder's digest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: str
    digest: str

    @classmethod
    def to(cls, folder: Path) -> "ModelReference":
        """Refer to the model in ``folder``."""
        return cls(folder=folder.as_posix(), digest=sha256_folder(folder))

    def open(self) -> Path:
        """Return the model's folder."""
        if sha256_folder(Path(self.folder)) != self.digest:
            raise PotstillError(f"{self.folder}: it was changed while students were trained. Run `distill run` again.")
        return Path(self.folder)


@holds_students("student", lambda student: student)
class Plan(BaseModel):
    """Everything that determines a student besides its seed, the vocabulary and the dev set.

    :ivar dev_outputs: the teacher's answers on dev, if that has no labels.
    :ivar teacher: the one that runs alongside, if any; :ivar teacher_layers: those matched with the student's.
    :ivar encoder: the one to start from.
    :ivar students: the ones to start from, by seed: from a joint run; or from the row ``start``, once that is trained.
    :ivar new_outputs: whether these students are for other tasks, so that the head above their
        encoder is initialised anew.
    :ivar optimiser: None: that student is used as it is.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str
    method: str
    student: AnyStudent
    start: str
    objective: Objective
    optimiser: AnyOptimiser | None
    metric: str
    positive: int
    pair: bool
    labels: list[str]
    inputs: SetReference
    outputs: SetReference | None
    dev_outputs: SetReference | None = None
    states: SetReference | None
    teacher: ModelReference | None
    teacher_layers: list[int] | None
    encoder: ModelReference | None
    students: dict[int, ModelReference] | None
    new_outputs: bool = False
    model: ModelReference | None
    threshold: str | None

    @property
    def kind(self) -> str:
        """What the student's outputs are."""
        return kind_of(self.metric)

    @property
    def row_before(self) -> str | None:
        """The row whose students it starts from, if any, while they are not filled in yet."""
        known = self.start in STARTS or self.encoder is not None or self.students is not None
        return None if known else self.start

    def student_start(self, seed: int) -> ModelReference:
        """Return the student to start from for this seed."""
        if seed not in self.students:
            planned = ", ".join(map(str, self.students))
            raise PotstillError(
                f"{self.task} {self.method}: its start has the seeds {planned}, not {seed}. Run `distill run` again."
            )
        return self.students[seed]

    def started(self, layout: Layout, seeds: Sequence[int]) -> "Plan":
        """Return the plan with the students of its start filled in, once they are trained; others are unchanged."""
        if self.row_before is None:
            return self
        folders = {seed: layout.student(self.task, self.row_before, seed) for seed in seeds}
        students = {seed: ModelReference.to(folder) for seed, folder in folders.items()}
        return self.model_copy(update={"students": students})


def make_plan(params: Params, task: str, method: str, layout: Layout) -> Plan:
    """Resolve one row for one task."""
    row = params.method(method)
    student = params.students[row.student]
    pretrained = None
    if student.source_model is not None:
        folder = layout.model(student.source_model)
        check_fits(f"students.{row.student}", student, folder)
        pretrained = ModelReference.to(folder)
    inputs = layout.transfer(task, row.data)
    outputs = layout.outputs(task, params.teacher_of(task, row), row.data)
    needs_outputs = params.reads_outputs(row, task)
    if needs_outputs:
        check_answers(read_manifest(inputs), read_manifest(outputs))
    states = None
    if row.objective.needs_states:
        folder = layout.states(task, params.teacher_of(task, row), row.data)
        check_answers(read_manifest(inputs), read_manifest(folder))
        check_width(f"methods.{method}", student, layout.model(student.source_model), folder)
        states = SetReference.to(folder, row.iterations)
    teacher = None
    if row.teacher_runs:
        folder = layout.teacher(task, params.teacher_of(task, row))
        model_folder = layout.model(student.source_model)
        check_beside(f"methods.{method}", row, student, model_folder, folder)
        check_positions(f"students.{row.student}", student, folder)
        teacher = ModelReference.to(folder)
    return Plan(
        task=task,
        method=method,
        student=student,
        start=row.start,
        objective=row.objective,
        optimiser=None if row.optimiser is None else params.optimisers[row.optimiser],
        metric=params.task(task).metrics[0],
        positive=params.task(task).positive_class,
        pair=params.task(task).is_pair,
        labels=params.task(task).label_names,
        inputs=SetReference.to(inputs, row.iterations),
        dev_outputs=_dev_answers(params, task, row, layout),
        outputs=SetReference.to(outputs, row.iterations) if needs_outputs else None,
        states=states,
        teacher=teacher,
        teacher_layers=row.teacher_runs.layers if row.teacher_runs else None,
        encoder=_encoder(params, row.start, layout),
        students=_joint_students(params, row.start, task, layout),
        new_outputs=row.start in params.joint and task not in params.joint[row.start].tasks,
        model=pretrained,
        threshold=row.threshold,
    )


def _dev_answers(params: Params, task: str, row: Method, layout: Layout) -> SetReference | None:
    """Return the teacher's outputs for dev, which replace its labels if it has none."""
    if params.task(task).label_of("dev") is not None:
        return None
    folder = layout.heldout_outputs(task, params.teacher_of(task, row), "dev")
    return SetReference.to(folder)


def _encoder(params: Params, start: str, layout: Layout) -> ModelReference | None:
    return ModelReference.to(layout.encoder(start)) if start in params.encoders else None


def _joint_students(params: Params, start: str, task: str, layout: Layout) -> dict[int, ModelReference] | None:
    if start not in params.joint:
        return None
    # The tasks' students share their encoder: for a task outside the row, any of them will do.
    group = params.joint[start].tasks
    source_task = task if task in group else min(group)
    folders = {seed: layout.joint_student(start, seed, source_task) for seed in params.seeds}
    return {seed: ModelReference.to(folder) for seed, folder in folders.items()}
