"""The teachers and students of a task to be timed, in the forms in which they may be fastest.

The best student on dev is exported to ONNX int8, which stays.  Of the other architectures, one student each is timed
in torch.  A teacher is timed in torch and in ONNX.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline_lib.base.devices import resolve_device, resolve_precision
from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.files import sha256_folder, sha256_json
from pipeline_lib.base.kinds import KINDS, Classes
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.seals import write_seal
from pipeline_lib.base.text import Text
from pipeline_lib.exports.onnx.exporter import export_onnx_int8
from pipeline_lib.exports.onnx.student import require_packages
from pipeline_lib.exports.onnx.teacher import export_teacher, load_onnx_teacher
from pipeline_lib.exports.opening import load_student as open_student
from pipeline_lib.models.folders import Predict, require_model
from pipeline_lib.models.serving import open_teacher
from pipeline_lib.models.students.student import load_student
from pipeline_lib.models.teacher import PROMPT
from pipeline_lib.params import Params

INT8 = "onnx-int8"
MIN_AGREEMENT = 0.98
"""A form that answers alike less often than this is not taken to be the system in torch."""


@dataclass(frozen=True)
class Contestant:
    """A teacher or a student in one form.

    :ivar form: ``torch`` with its number format, or what ``distill export --to`` calls it.
    :ivar names: class names, or the name of a regression's score.
    :ivar max_length: a teacher's limit of word pieces; None for a student.
    """

    form: str
    folder: Path
    names: tuple[str, ...]
    max_length: int | None = None
    kind: str = Classes.name

    def load(self, device: str) -> Predict:
        """Return its prediction function."""
        in_torch = self.form.startswith("torch ")
        if self.max_length is None:
            student = load_student(self.folder, device) if in_torch else open_student(self.folder)
            return student.logits
        if in_torch:
            return open_teacher(self.folder, [*self.names], self.max_length, device)[1]
        return load_onnx_teacher(self.folder, self.form, self.max_length)


@dataclass
class System:
    """A teacher, or the student that represents an architecture.

    :ivar forms: on the processor, the one in torch first.
    :ivar not_timed: form to the reason why it is not among them.
    """

    method: str | None
    forms: list[Contestant]
    accelerated: list[Contestant]
    not_timed: dict[str, str] = field(default_factory=dict)

    def digest(self) -> str:
        """Return the digest of what is timed: the model, and the forms that it has."""
        forms = [[each.form, each.names, each.max_length] for each in [*self.forms, *self.accelerated]]
        return sha256_json([self.method, sha256_folder(self.forms[0].folder), forms, self.not_timed])


def students_of(params: Params, task: str, layout: Layout, device: str, best: str | None) -> dict[str, System]:
    """Return a student of each of the task's architectures, of the first seed.

    :param best: the method whose student is exported, to the empty folder ``exports/<task>``.
    """
    settings, rows = params.task(task), params.scored_methods_of(task)
    methods: dict[str, str] = {}
    for name in [*([best] if best else []), *rows]:
        methods.setdefault(rows[name].student, name)
    systems = {}
    for architecture, method in methods.items():
        folder = layout.student(task, method, params.seeds[0])
        require_model(folder)
        in_torch = Contestant("torch float32", folder, tuple(settings.label_names), None, settings.kind)
        systems[architecture] = System(method, [in_torch], [in_torch] if device != "cpu" else [])
    if best is not None:
        _export(systems[rows[best].student], layout.exported(task))
    return systems


def _export(student: System, out: Path) -> None:
    (in_torch,) = student.forms
    try:
        export_onnx_int8(in_torch.folder, out)
    except PotstillError as error:
        student.not_timed[INT8] = str(error)
        out.mkdir(parents=True, exist_ok=True)
        (out / "README").write_text(f"Nothing was exported: {error}\n", encoding="utf-8")
    else:
        write_seal(out)
        student.forms.append(replace(in_torch, form=INT8, folder=out))


def teachers_of(params: Params, task: str, layout: Layout, device: str) -> dict[str, System]:
    """Return the task's teachers that run here, in torch; see :func:`add_onnx`."""
    systems, settings = {}, params.task(task)
    for name, row in params.teachers_of(task).items():
        if not row.runs:
            continue
        folder, names = layout.teacher(task, name), tuple(settings.label_names)
        require_model(folder)
        in_torch, accelerated = (
            Contestant(f"torch {precision}", folder, names, row.max_length, settings.kind)
            for precision in (resolve_precision("auto", resolve_device(where)) for where in ("cpu", device))
        )
        systems[name] = System(None, [in_torch], [accelerated] if device != "cpu" else [])
    return systems


def add_onnx(teacher: System, pair: bool, out: Path) -> None:
    """Write a teacher's ONNX forms to ``out``, or note why there are none."""
    (in_torch,) = teacher.forms
    try:
        require_packages("onnx", "onnxruntime")
        if (in_torch.folder / PROMPT).exists():
            raise PotstillError("a language model, which is not exported")
        folders = export_teacher(in_torch.folder, [*in_torch.names], in_torch.max_length, pair, out)
    except Exception as error:  # torch's exporter raises anything for a model that it cannot write
        teacher.not_timed["onnx"] = reason_of(error)
    else:
        teacher.forms += [replace(in_torch, form=form, folder=folder) for form, folder in folders.items()]


def leave_out_deviating(system: System, texts: Sequence[Text]) -> None:
    """Time no form whose answers are not those in torch, and note why."""
    in_torch, *others = system.forms
    answers = in_torch.load("cpu")(texts) if others else None
    for other in others:
        agreement = KINDS[other.kind].same_answers(answers, other.load("cpu")(texts))
        if agreement < MIN_AGREEMENT:
            system.forms.remove(other)
            system.not_timed[other.form] = f"answers as in torch only by {agreement:.1%} on {len(texts)} texts"
