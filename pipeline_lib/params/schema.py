"""The schema of the whole of params.yaml, and what follows from its rows."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.params.base import Name, Positive, Section, Seed
from pipeline_lib.params.encoders import STARTS, AnyEncoder, Encoder, SentenceVectors
from pipeline_lib.params.methods import AnyOptimiser, Joint, Method
from pipeline_lib.params.models import ModelSource, Precompute, Teacher, Vocabulary
from pipeline_lib.params.retrieval import Retrieval, Similarity
from pipeline_lib.params.sources import MODELS, WIKIPEDIA, InputFile, RunSource, model_folder
from pipeline_lib.params.students import AnyStudent, holds_students
from pipeline_lib.params.tasks import Task
from pipeline_lib.params.texts import Recipe, Tagger, Wikipedia
from pipeline_lib.params.yardsticks import with_yardsticks


class LocalProcesses(Section):
    """Worker processes on this machine: `workers` on a CPU, `per_accelerator` on each GPU, sharing its memory."""

    kind: Literal["local"]
    per_accelerator: Positive = 1


class RayCluster(Section):
    """A Ray cluster: the one at ``address``, or (null) one that is started on this machine."""

    kind: Literal["ray"]
    address: str | None


EngineSettings = Annotated[LocalProcesses | RayCluster, Field(discriminator="kind")]
"""What runs the jobs.  It changes no byte of any result."""


@holds_students("students", lambda student: dict[Name, student])
class Params(Section):
    """The whole of params.yaml.

    ``extensions`` are modules outside the library, imported before the rest is read.  ``yardsticks`` false leaves out
    the regressions that every labelled task gets.
    """

    extensions: list[str] = Field(default_factory=list)
    inputs: str
    device: Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")]
    workers: Positive | None = None
    engine: EngineSettings = LocalProcesses(kind="local")
    tasks: Annotated[dict[Name, Task], Field(min_length=1)]
    tagger: Tagger
    transfer: Annotated[dict[Name, Recipe], Field(min_length=1)]
    models: Annotated[dict[Name, ModelSource], Field(min_length=1)]
    teachers: Annotated[dict[Name, Teacher], Field(min_length=1)]
    refined: list[Name]
    precompute: Precompute
    vocabulary: Vocabulary
    sentence_vectors: SentenceVectors
    students: dict[Name, AnyStudent]
    optimisers: dict[Name, AnyOptimiser]
    encoders: dict[Name, AnyEncoder]
    joint: dict[Name, Joint]
    methods: Annotated[dict[Name, Method], Field(min_length=1)]
    seeds: Annotated[list[Seed], Field(min_length=1)]
    retrieval: dict[Name, Retrieval]
    similarity: dict[Name, Similarity]
    wikipedia: Wikipedia | None
    yardsticks: bool = True

    @model_validator(mode="before")
    @classmethod
    def _with_yardsticks(cls, values: Any) -> Any:
        return with_yardsticks(values)

    def sources(self) -> dict[str, RunSource]:
        """Return what the run is made from, by what it is: ``task movies``, ``model minilm``."""
        sources = []
        for name, task in self.tasks.items():
            key = f"tasks.{name}"
            sources.append(RunSource(f"task {name}", f"{key}.source", task.source, key, name))
        for name, model in self.models.items():
            sources.append(RunSource(f"model {name}", f"models.{name}", model, MODELS, name))
        for task in self.tasks:
            for name, teacher in self.teachers_of(task).items():
                what, key = f"teacher {name} of {task}", f"teachers.{name}.tuning"
                sources.append(RunSource(what, key, teacher.tuning, MODELS, name, task))
        if self.wikipedia is not None:
            source = self.wikipedia.source
            sources.append(RunSource("Wikipedia", "wikipedia.source", source, WIKIPEDIA))
        sources.append(RunSource("word vectors", "vocabulary.vectors", self.vocabulary.vectors, MODELS))
        return {source.what: source for source in sources}

    def input_files(self) -> list[InputFile]:
        """Return the user's own files that are named."""
        inputs = Path(self.inputs)
        return [file for source in self.sources().values() for file in source.files(inputs)]

    def local_models(self) -> dict[str, Path]:
        """Return the folders of those models that need no fetching, by their rows."""
        inputs = Path(self.inputs)
        folders = {name: model_folder(source, inputs) for name, source in self.models.items()}
        return {name: folder for name, folder in folders.items() if folder is not None}

    def task(self, name: str) -> Task:
        """Return one task; an unknown name raises an error that lists them."""
        return _named(self.tasks, name, "tasks")

    def methods_of(self, task: str) -> dict[str, Method]:
        """Return the rows of one task: those meant for it whose transfer set and teacher it has.

        A row that starts from a joint training belongs to the tasks of that training, and to any
        that the row names; a row that starts from another row belongs to that row's tasks.
        """
        rows = {n: m for n, m in self.methods.items() if m.tasks is None or task in m.tasks}
        rows = {n: m for n, m in rows.items() if self.transfer[m.data].covers(task)}
        teachers = {None, *self.teachers_of(task)}
        others = {name for name, joint in self.joint.items() if task not in joint.tasks}
        rows = {n: m for n, m in rows.items() if m.tasks is not None or m.start not in others}
        rows = {n: m for n, m in rows.items() if m.teacher in teachers}
        return {n: m for n, m in rows.items() if {*self.rows_before(n)} <= rows.keys()}

    def scored_methods_of(self, task: str) -> dict[str, Method]:
        """Return the rows of one task whose students answer: not those that only learn layers."""
        rows = self.methods_of(task).items()
        return {name: row for name, row in rows if not row.objective.is_of_layers}

    def row_before(self, method: str) -> str | None:
        """Return the row whose students this one starts from, or None.

        Encoders and joint trainings take precedence over rows of the same name.
        """
        start = self.methods[method].start
        named_first = {*STARTS, *self.encoders, *self.joint}
        return start if start in self.methods and start not in named_first else None

    def rows_before(self, method: str) -> list[str]:
        """Return the rows that this one's students start from, directly or not, the nearest first.

        A cycle ends where it closes: checking rejects it.
        """
        chain: list[str] = []
        before = self.row_before(method)
        while before is not None and before not in chain:
            chain.append(before)
            before = self.row_before(before)
        return chain

    def sentence_encoders(self) -> dict[str, Encoder]:
        """Return the encoders that are trained to sentence vectors."""
        return {name: row for name, row in self.encoders.items() if isinstance(row, Encoder)}

    def teachers_of(self, task: str) -> dict[str, Teacher]:
        """Return the teachers that know one task; an unknown name raises an error."""
        self.task(task)
        return {name: teacher for name, teacher in self.teachers.items() if teacher.knows(task)}

    def teacher_of(self, task: str, row: Method | Joint) -> str:
        """Return the name of a row's teacher: its own, or else the task's first."""
        return row.teacher or next(iter(self.teachers_of(task)))

    def lengths(self) -> list[tuple[str, int, str]]:
        """Return (key, word pieces, model) of each length that a model must have positions for."""
        lengths = [
            (f"teachers.{name}.max_length", teacher.max_length, teacher.model)
            for name, teacher in self.teachers.items()
            if teacher.model is not None
        ]
        lengths += [
            (f"retrieval.{row}.systems.{name}.max_length", system.max_length, system.model)
            for row, retrieval in self.retrieval.items()
            for name, system in retrieval.systems.items()
            if system.kind == "model"
        ]
        vectors = self.sentence_vectors
        return [*lengths, ("sentence_vectors.max_length", vectors.max_length, vectors.model)]

    def reads_words(self, row: Joint) -> bool:
        """Whether a joint training's student reads words, not a model's word pieces."""
        return self.students[row.student].source_model is None

    def reads_outputs(self, row: Method, task: str) -> bool:
        """Whether a row needs a teacher's outputs for a task.

        Synthetic rows have no label of their own, nor do unlabelled texts or any row of a training
        set without labels; the teacher's argmax takes its place.
        """
        recipe = self.recipe(row.data)
        original = recipe.changes_nothing or (row.iterations == 0 and not recipe.unlabelled)
        labelled = original and self.task(task).learns_from_labels
        return row.objective.needs_teacher or not labelled

    def states_of(self, task: str) -> dict[str, list[str]]:
        """Return the transfer sets that methods read states for, by the states' teacher."""
        by_teacher: dict[str, list[str]] = {}
        for row in self.methods_of(task).values():
            if row.objective.needs_states:
                recipes = by_teacher.setdefault(self.teacher_of(task, row), [])
                recipes += [] if row.data in recipes else [row.data]
        return by_teacher

    def read_by_joint(self, task: str) -> set[tuple[str, str]]:
        """Return (teacher, transfer set) of each of a task's outputs that joint trainings read."""
        rows = (row for row in self.joint.values() if task in row.tasks)
        return {(self.teacher_of(task, row), row.tasks[task]) for row in rows}

    def optimiser_of(self, method: Method) -> AnyOptimiser:
        """Return a method's optimiser: the joint training's, if its students start from one."""
        joint = self.joint.get(method.start)
        return self.optimisers[joint.optimiser if joint else method.optimiser]

    def recipes_of(self, task: str) -> list[str]:
        """Return the names of the transfer sets that are made for one task."""
        return [name for name, recipe in self.transfer.items() if recipe.covers(task)]

    def recipe(self, name: str) -> Recipe:
        """Return one transfer-set recipe; an unknown name raises an error that lists them."""
        return _named(self.transfer, name, "transfer")

    def retrieval_row(self, name: str) -> Retrieval:
        """Return one row of retrieval; an unknown name raises an error that lists them."""
        return _named(self.retrieval, name, "retrieval")

    def similarity_row(self, name: str) -> Similarity:
        """Return one row of untuned similarity; an unknown name raises an error that lists them."""
        return _named(self.similarity, name, "similarity")

    def encoder(self, name: str) -> AnyEncoder:
        """Return one encoder; an unknown name raises an error that lists them."""
        return _named(self.encoders, name, "encoders")

    def joint_row(self, name: str) -> Joint:
        """Return one joint training; an unknown name raises an error that lists them."""
        return _named(self.joint, name, "joint")

    def refined_teacher(self, name: str) -> str:
        """Return the name of a refined teacher; an unknown one raises an error that lists them."""
        return _named(dict.fromkeys(self.refined, name), name, "refined")

    def method(self, name: str) -> Method:
        """Return one method; an unknown name raises an error that lists them."""
        return _named(self.methods, name, "methods")


def _named(mapping: dict[str, Any], name: str, group: str) -> Any:
    if name not in mapping:
        raise PotstillError(f"{group}: no {name!r} in params.yaml; there are {', '.join(mapping) or 'none'}.")
    return mapping[name]
