"""The whole of params.yaml: reading it, checking it, and saying what is wrong with it."""

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.layout import HELDOUT
from pipeline_lib.params.base import Name, Positive, Section, Seed
from pipeline_lib.params.encoders import STARTS, Encoder, SentenceVectors
from pipeline_lib.params.engine import EngineSettings
from pipeline_lib.params.joint import Joint
from pipeline_lib.params.methods import BESIDE, RUNNING, Evaluate, Method, Optimiser, Speed
from pipeline_lib.params.models import ModelSource, Precompute, Teacher, Vocabulary
from pipeline_lib.params.profiles import is_profile, line_of, read_values
from pipeline_lib.params.students import ARCHITECTURES, Student, holds_students
from pipeline_lib.params.tasks import Classification, Regression, Task
from pipeline_lib.params.transfer import Recipe, Tagger
from pipeline_lib.params.wikipedia import Wikipedia


@holds_students("students", lambda student: dict[Name, student])
class Params(Section):
    """The whole of params.yaml."""

    inputs: str
    device: Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")]
    workers: Positive | None
    engine: EngineSettings
    tasks: Annotated[dict[Name, Task], Field(min_length=1)]
    tagger: Tagger
    transfer: Annotated[dict[Name, Recipe], Field(min_length=1)]
    models: Annotated[dict[Name, ModelSource], Field(min_length=1)]
    teachers: Annotated[dict[Name, Teacher], Field(min_length=1)]
    precompute: Precompute
    vocabulary: Vocabulary
    sentence_vectors: SentenceVectors
    students: dict[Name, Student]
    optimisers: dict[Name, Optimiser]
    encoders: dict[Name, Encoder]
    joint: dict[Name, Joint]
    methods: Annotated[dict[Name, Method], Field(min_length=1)]
    seeds: Annotated[list[Seed], Field(min_length=1)]
    evaluate: Evaluate
    speed: Speed
    wikipedia: Wikipedia | None

    @model_validator(mode="after")
    def _references(self) -> "Params":
        self._check_restrictions()
        self._check_teachers()
        self._check_encoders()
        self._check_joint()
        self._check_methods()
        self._check_objectives()
        self._check_outputs()
        self._check_states()
        self._check_running()
        self._check_jointly_started()
        for name, task in self.tasks.items():
            if task.source.kind == "neighbours" and self.wikipedia is None:
                raise ValueError(
                    f"tasks.{name}.source: neighbours are sentences of Wikipedia, and `wikipedia` "
                    "is null. Describe a source there, as the embedded params.yaml does"
                )
        for name, task in ((m, t) for m in self.methods for t in self.tasks):
            baseline = self.methods[name].baseline
            rows = self.methods_of(task)
            if name in rows and baseline is not None and baseline not in rows:
                raise ValueError(
                    f"methods.{name}.baseline: {baseline} is no row of task {task}: its "
                    f"`tasks`, or those of {self.methods[baseline].data}, leave it out"
                )
        self._check_decisions()
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("seeds: each may stand only once")
        return self

    def _check_restrictions(self) -> None:
        """Refuse rows that are restricted to tasks that are not there."""
        restricted = {f"transfer.{name}": recipe.tasks for name, recipe in self.transfer.items()}
        restricted |= {f"methods.{name}": method.tasks for name, method in self.methods.items()}
        restricted |= {f"teachers.{name}": own.tasks for name, own in self.teachers.items()}
        for where, tasks in restricted.items():
            for task in tasks or []:
                if task not in self.tasks:
                    raise ValueError(
                        f"{where}.tasks: no task {task!r}; there are {', '.join(self.tasks)}. "
                        "Correct it, or set null for all of them"
                    )

    def _check_teachers(self) -> None:
        for name, teacher in self.teachers.items():
            _check_names(f"teachers.{name}", teacher, self.models, "model")
            for recipe in teacher.data or []:
                if recipe not in self.transfer:
                    raise ValueError(
                        f"teachers.{name}.data: no transfer set {recipe!r}; there are "
                        f"{', '.join(self.transfer)}"
                    )
            if name in self.methods or name == HELDOUT:
                what = "a row of `methods`" if name in self.methods else "a folder of outputs"
                raise ValueError(f"teachers.{name}: {what} has this name. Choose another")
        for task in self.tasks:
            if not self.teachers_of(task):
                raise ValueError(
                    f"teachers: none knows {task}. Name it in one's `tasks`, or set that to null"
                )
        _check_names("sentence_vectors", self.sentence_vectors, self.models, "model")
        if self.vocabulary.vectors.kind == "model":
            _check_names("vocabulary.vectors", self.vocabulary.vectors, self.models, "model")

    def _check_outputs(self) -> None:
        """Refuse rows whose teacher is not told from others, or does not answer their rows."""
        for task in self.tasks:
            for name, row in self.methods_of(task).items():
                if self.reads_outputs(row):
                    self._check_answered(f"methods.{name}", row, task, row.data)
        for name, row in self.joint.items():
            for task, recipe in row.tasks.items():
                if row.objective.needs_teacher or not self.transfer[recipe].changes_nothing:
                    self._check_answered(f"joint.{name}", row, task, recipe)

    def _check_answered(self, where: str, row: Method | Joint, task: str, recipe: str) -> None:
        teachers = self.teachers_of(task)
        if row.teacher is None and len(teachers) > 1:
            raise ValueError(
                f"{where}.teacher: missing, and {task} has the teachers {', '.join(teachers)}. "
                "Name one of them"
            )
        name = self.teacher_of(task, row)
        if name not in teachers:
            raise ValueError(
                f"{where}.teacher: {name} does not know {task}. Name one of {', '.join(teachers)}"
            )
        if not teachers[name].answers(recipe):
            raise ValueError(
                f"{where}: teacher {name} does not answer {recipe} of {task}. Add it to the "
                "teacher's `data`, or set that to null"
            )

    def _check_states(self) -> None:
        """Refuse rows whose student and teacher do not have as many states to compare."""
        for task in self.tasks:
            for name, row in self.methods_of(task).items():
                if not row.objective.needs_states:
                    continue
                count, key = self.students[row.student].state_count, f"methods.{name}.objective"
                if count < 2:
                    raise ValueError(
                        f"{key}: the states of a student's layers are compared, less the last, and "
                        f"{row.student} has {count}; use a transformer of two layers or more"
                    )
                teacher = self.teacher_of(task, row)
                states = self.teachers[teacher].states
                if states is None:
                    raise ValueError(
                        f"{key}: it reads the states of teacher {teacher}, which keeps none. Name "
                        f"the layers in teachers.{teacher}.states"
                    )
                if len(states.layers) != count - 1:
                    raise ValueError(
                        f"{key}: the states of a student's layers are compared, less the last; "
                        f"for the {count} of {row.student} name {count - 1} layers in "
                        f"teachers.{teacher}.states.layers (found {len(states.layers)})"
                    )

    def _check_running(self) -> None:
        """Refuse rows whose teacher runs for nothing, or has other layers than their student."""
        for name, row in self.methods.items():
            if row.objective.needs_running_teacher != (row.teacher_runs is not None):
                raise ValueError(
                    f"methods.{name}.teacher_runs: goes with {', '.join(RUNNING)} in the "
                    "objective, whose targets are too large to be stored: give both or neither"
                )
            count = self.students[row.student].state_count
            if row.teacher_runs and len(row.teacher_runs.layers) != count:
                raise ValueError(
                    f"methods.{name}.teacher_runs.layers: one for each layer of {row.student}, "
                    f"which must be a transformer: it has {count} "
                    f"(found {len(row.teacher_runs.layers)})"
                )

    def _check_decisions(self) -> None:
        """Refuse keys that mean nothing for a row's task: classes decide, scores do not."""
        for task, settings in self.tasks.items():
            for name, method in self.methods_of(task).items():
                if method.min_confidence is not None and settings.is_regression:
                    raise ValueError(
                        f"methods.{name}.min_confidence: {task} is a regression, whose teacher has "
                        "no confidence. Take it out, or restrict the row by its `tasks`"
                    )
                if method.threshold is not None and len(settings.label_names) != 2:
                    raise ValueError(
                        f"methods.{name}.threshold: {task} does not have two classes. Take it "
                        "out, or restrict the row by its `tasks`"
                    )

    def _check_methods(self) -> None:
        starts = {**dict.fromkeys(STARTS), **self.encoders, **self.joint}
        for name, method in self.methods.items():
            _check_names(f"methods.{name}", method, self.students, "student")
            _check_names(f"methods.{name}", method, self.transfer, "data")
            _check_names(f"methods.{name}", method, self.optimisers, "optimiser")
            _check_names(f"methods.{name}", method, self.methods, "baseline")
            _check_names(f"methods.{name}", method, starts, "start")
            _check_names(f"methods.{name}", method, self.teachers, "teacher")
            self._check_start(f"methods.{name}", method)
            trained = self.encoders.get(method.start) or self.joint.get(method.start)
            if trained is not None and trained.student != method.student:
                raise ValueError(
                    f"methods.{name}.student: {method.student}, but its start {method.start} is "
                    f"a {trained.student}. Make them the same"
                )
            if method.optimiser is None:
                self._check_taken(name, method)
        for name in self.methods:
            self._check_baselines_end(name)

    def _check_start(self, where: str, row: Method | Joint) -> None:
        """Refuse a start that the row's student cannot have."""
        student = self.students[row.student]
        if student.source_model not in (None, *self.models):
            raise ValueError(
                f"students.{row.student}.model: no {student.source_model!r}; there are "
                f"{', '.join(self.models)}"
            )
        if student.pretrained and row.start in ("vectors", "random"):
            raise ValueError(
                f"{where}.start: a {student.architecture} student is made of a pretrained model's "
                "layers; use model"
            )
        if row.start == "model" and not student.pretrained:
            raise ValueError(
                f"{where}.start: a {student.architecture} student takes no layers of a pretrained "
                "model; use vectors or random"
            )
        if not student.word_vectors and row.start == "vectors":
            raise ValueError(
                f"{where}.start: a {student.architecture} student has no word vectors; use random"
            )

    def _check_taken(self, name: str, method: Method) -> None:
        """Refuse what means nothing of a student that is taken as it is."""
        joint = self.joint.get(method.start)
        if joint is None:
            raise ValueError(
                f"methods.{name}.optimiser: null takes a joint training's student as it is, and "
                f"{method.start} is none. Name a row of `joint` as its start, or an optimiser"
            )
        for key in ("iterations", "repeat_originals", "min_confidence", "threshold"):
            if getattr(method, key) is not None:
                raise ValueError(
                    f"methods.{name}.{key}: without an optimiser the student of {method.start} is "
                    "taken as it is. Set null, or name an optimiser"
                )
        if method.objective != joint.objective:
            raise ValueError(
                f"methods.{name}.objective: without an optimiser the student is that of "
                f"{method.start}. Give that row's objective, or name an optimiser"
            )

    def _check_jointly_started(self) -> None:
        """Check that joint trainings have the tasks, and the data, that rows take from them."""
        started = {n: m for n, m in self.methods.items() if m.start in self.joint}
        for name, method in started.items():
            joint = self.joint[method.start]
            for task in method.tasks or []:
                if task not in joint.tasks:
                    raise ValueError(
                        f"methods.{name}.tasks: {method.start} is not trained on task {task}, but "
                        f"on {', '.join(joint.tasks)}. Name some of these"
                    )
            for task in (task for task in self.tasks if name in self.methods_of(task)):
                if method.optimiser is None and method.data != joint.tasks[task]:
                    raise ValueError(
                        f"methods.{name}.data: {method.data}, but {method.start} is trained on "
                        f"{joint.tasks[task]} of task {task}, and taken as it is. Name that"
                    )

    def _check_baselines_end(self, name: str) -> None:
        chain = [name]
        while (baseline := self.methods[chain[-1]].baseline) is not None:
            if baseline == name:
                raise ValueError(
                    f"methods.{name}.baseline: {' → '.join([*chain, name])} leads back to the row "
                    "itself. Name an undistilled row, or set null"
                )
            if baseline in chain:
                return  # a circle further on, which its own rows report
            chain.append(baseline)

    def _check_objectives(self) -> None:
        for task in (name for name, settings in self.tasks.items() if settings.is_regression):
            rows = {f"methods.{name}": row for name, row in self.methods_of(task).items()}
            rows |= {f"joint.{name}": row for name, row in self.joint.items() if task in row.tasks}
            for where, row in rows.items():
                if "soft_labels" in row.objective.weights:
                    raise ValueError(
                        f"{where}.objective.soft_labels: task {task} is a regression, whose "
                        "one output has no probabilities to learn from. Use logits, or name the "
                        f"other tasks in {where}.tasks"
                    )

    def _check_encoders(self) -> None:
        if self.encoders and self.wikipedia is None:
            raise ValueError(
                "wikipedia: null, but encoders are trained on its sentences. Give a source, or set "
                "`encoders: {}`"
            )
        for name, encoder in self.encoders.items():
            if name in STARTS:
                raise ValueError(
                    f"encoders.{name}: the name has a meaning of its own; take another"
                )
            _check_names(f"encoders.{name}", encoder, self.students, "student")
            _check_names(f"encoders.{name}", encoder, self.optimisers, "optimiser")
            if self.students[encoder.student].sentence_width is None:
                raise ValueError(
                    f"encoders.{name}.student: {encoder.student} has no sentence vector of the "
                    "teacher's width; use one of architecture bilstm_sra"
                )
            if encoder.wikipedia is not None and encoder.wikipedia > self.wikipedia.sentences:
                raise ValueError(
                    f"encoders.{name}.wikipedia: {encoder.wikipedia}, but wikipedia.sentences "
                    f"splits {self.wikipedia.sentences}. Raise that, or set null for all of them"
                )
            self._check_sets(f"encoders.{name}", encoder.tasks)

    def _check_joint(self) -> None:
        for name, joint in self.joint.items():
            if name in STARTS or name in self.encoders:
                raise ValueError(
                    f"joint.{name}: methods that start from {name} mean another one; take "
                    "another name"
                )
            _check_names(f"joint.{name}", joint, self.students, "student")
            _check_names(f"joint.{name}", joint, self.optimisers, "optimiser")
            _check_names(f"joint.{name}", joint, dict.fromkeys(STARTS), "start")
            self._check_start(f"joint.{name}", joint)
            self._check_sets(f"joint.{name}", joint.tasks)
            _check_names(f"joint.{name}", joint, self.teachers, "teacher")
            if joint.objective.needs_states or joint.objective.needs_running_teacher:
                raise ValueError(
                    f"joint.{name}.objective: only a method's row learns from a teacher's layers; "
                    f"leave out {', '.join(n for n in joint.objective.weights if n in BESIDE)}"
                )

    def _check_sets(self, where: str, tasks: Mapping[str, str | None]) -> None:
        """Check that there are these tasks, with these transfer sets."""
        for task, recipe in tasks.items():
            if task not in self.tasks:
                raise ValueError(
                    f"{where}.tasks: no task {task!r}; there are {', '.join(self.tasks)}"
                )
            if recipe is not None and recipe not in self.recipes_of(task):
                raise ValueError(
                    f"{where}.tasks.{task}: no transfer set {recipe!r} of this task; "
                    f"there are {', '.join(self.recipes_of(task))}"
                )

    def task(self, name: str) -> Task:
        """Return one task, or say which there are."""
        return _named(self.tasks, name, "tasks")

    def methods_of(self, task: str) -> dict[str, Method]:
        """Return the rows of one task: those meant for it whose transfer set and teacher it has.

        Rows that start from a joint training are those of its tasks alone.
        """
        rows = {n: m for n, m in self.methods.items() if m.tasks is None or task in m.tasks}
        rows = {n: m for n, m in rows.items() if self.transfer[m.data].covers(task)}
        known = {None, *self.teachers_of(task)}
        others = {name for name, joint in self.joint.items() if task not in joint.tasks}
        return {n: m for n, m in rows.items() if m.teacher in known and m.start not in others}

    def teachers_of(self, task: str) -> dict[str, Teacher]:
        """Return the teachers that know one task."""
        return {name: own for name, own in self.teachers.items() if own.knows(task)}

    def teacher_of(self, task: str, row: Method | Joint) -> str:
        """Return the name of a row's teacher: its own, or else the task's first."""
        return row.teacher or next(iter(self.teachers_of(task)))

    def lengths(self) -> list[tuple[str, int, str]]:
        """Return (key, word pieces, model) of each limit that a model's positions must allow."""
        own = [
            (f"teachers.{name}.max_length", teacher.max_length, teacher.model)
            for name, teacher in self.teachers.items()
            if teacher.model is not None
        ]
        vectors = self.sentence_vectors
        return [*own, ("sentence_vectors.max_length", vectors.max_length, vectors.model)]

    def reads_words(self, row: Joint) -> bool:
        """Whether a joint training's student reads words, not a model's word pieces."""
        return self.students[row.student].source_model is None

    def reads_outputs(self, row: Method) -> bool:
        """Whether a row needs a teacher's outputs.

        Synthetic rows have no label of their own; there the teacher's argmax stands in.
        """
        original = self.recipe(row.data).changes_nothing or row.iterations == 0
        return row.objective.needs_teacher or not original

    def states_of(self, task: str) -> dict[str, list[str]]:
        """Return the transfer sets whose rows read states, by the teacher whose states they are."""
        found: dict[str, list[str]] = {}
        for row in self.methods_of(task).values():
            if row.objective.needs_states:
                recipes = found.setdefault(self.teacher_of(task, row), [])
                recipes += [] if row.data in recipes else [row.data]
        return found

    def optimiser_of(self, method: Method) -> Optimiser:
        """Return what trains a method's students: the joint training's, if they start from one."""
        joint = self.joint.get(method.start)
        return self.optimisers[joint.optimiser if joint else method.optimiser]

    def recipes_of(self, task: str) -> list[str]:
        """Return the names of the transfer sets that are made for one task."""
        return [name for name, recipe in self.transfer.items() if recipe.covers(task)]

    def recipe(self, name: str) -> Recipe:
        """Return one transfer-set recipe, or say which there are."""
        return _named(self.transfer, name, "transfer")

    def method(self, name: str) -> Method:
        """Return one method, or say which there are."""
        return _named(self.methods, name, "methods")


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check ``params.yaml`` or a profile (YAML 1.2, as DVC reads it).

    :raises DistilleryError: naming each faulty key, what is wrong with it, and the remedy.
    """
    if Path(path).name == "params.yaml" and is_profile(path):
        raise DistilleryError(
            f"{path}: a profile, and DVC reads plain files only. Move it below profiles/, and "
            "write params.yaml with `distill profile use`."
        )
    raw = read_values(path)
    try:
        return Params.model_validate(raw)
    except ValidationError as error:
        raise _refusal(error, lambda keys: _place(Path(path), keys)) from error


def check_params(raw: Any, where: str = "params.yaml") -> Params:
    """Validate the mapping read from params.yaml; ``where`` opens the error message."""
    try:
        return Params.model_validate(raw)
    except ValidationError as error:
        raise _refusal(error, lambda _: where) from error


_MEMBERS = ("Range", "list[str]", "literal['all']", "constrained-float")
"""Members of unions, as pydantic names them in the path to a fault."""


def _refusal(error: ValidationError, place: Callable[[list[str]], str]) -> DistilleryError:
    """Return the error that names every fault; ``place`` says where a key stands."""
    faults = [(_keys(fault), _explain(fault)) for fault in error.errors()]
    return DistilleryError("\n".join(f"{place(keys)}: {fault}" for keys, fault in faults))


def _place(path: Path, keys: list[str]) -> str:
    """Return the file, and of a profile the line, in which a key stands."""
    line = line_of(path, keys) if is_profile(path) else None
    return str(path) if line is None else f"{path}:{line}"


def _keys(fault: Any) -> list[str]:
    # The tags of discriminated unions stand in pydantic's path, but not in the file.
    path = list(fault["loc"])
    return [str(part) for i, part in enumerate(path) if not _is_tag(path, i)]


def _explain(fault: Any) -> str:
    path = list(fault["loc"])
    inner = [part for part in _keys(fault) if part not in _MEMBERS]
    key = ".".join(inner) or "the file"
    if fault["type"] == "extra_forbidden":
        return f"{key}: unknown key. Take it out or correct it{_nearest(str(path[-1]))}."
    if fault["type"] == "union_tag_not_found":
        key = f"{key}.{fault['ctx']['discriminator'].strip(chr(39))}"
        return f"{key}: missing. Add it; there are no defaults (docs/parameters.md)."
    if fault["type"] == "missing":
        return f"{key}: missing. Add it; there are no defaults (docs/parameters.md)."
    message = fault["msg"].removeprefix("Value error, ")
    if not path and fault["type"] == "value_error":
        return message  # the checks over the whole file name their key themselves
    return f"{key}: {message} (found {fault['input']!r:.60})"


def _is_tag(path: list[Any], i: int) -> bool:
    if i > 1 and path[i - 2] == "tasks":
        return path[i] in ("classification", "regression")
    if i > 1 and path[i - 2] == "students":
        return path[i] in ARCHITECTURES
    tags = ("package", "files", "glue", "hub", "neighbours", "path", "model", "file")
    if i > 1 and path[i - 2] == "models":
        return path[i] in ("package", "package_parts", "path", "hub")
    if i > 0 and path[i - 1] == "tuning":
        return path[i] in ("single", "refined", "finished")
    if i == 1 and path[0] == "engine":
        return path[i] in ("local", "ray")
    return i > 0 and path[i - 1] in ("source", "vectors") and path[i] in tags


def _nearest(key: str) -> str:
    known = {
        name
        for section in (*Section.__subclasses__(), Classification, Regression)
        for name in section.model_fields
    }
    close = difflib.get_close_matches(key, sorted(known), n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""


def _check_names(where: str, row: Section, known: dict[str, Any], key: str) -> None:
    value = getattr(row, key)
    if value is not None and value not in known:
        raise ValueError(f"{where}.{key}: no {value!r}; there are {', '.join(known)}")


def _named(mapping: dict[str, Any], name: str, group: str) -> Any:
    if name not in mapping:
        raise DistilleryError(
            f"{group}: no {name!r} in params.yaml; there are {', '.join(mapping)}."
        )
    return mapping[name]
