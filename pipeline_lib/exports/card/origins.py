"""Where a student's parts come from, and their declared licences."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline_lib.base.layout import Layout
from pipeline_lib.exports.card.card_data import Facts
from pipeline_lib.params import Encoder, Method, NeighbourPairs, PackageParts, Params
from pipeline_lib.params.sources import MODELS
from pipeline_lib.sources.run_sources import declared_licences, provenance_text


@dataclass(frozen=True)
class Origin:
    """A part of a student.

    :ivar licences: which licence is declared by whom; empty if none is.
    :ivar hub: its name on the Hugging Face hub, if it was taken from there.
    """

    part: str
    source: str
    licences: list[str] = field(default_factory=list)
    hub: str | None = None
    is_data: bool = False


def origins(facts: Facts) -> list[Origin]:
    """Return the parts of a student: data, teachers, and what it starts from.

    Empty if its row of params.yaml is unknown.
    """
    if facts.row is None:
        return []
    location, params = facts.place, facts.row.params
    run = _Run(params, location.layout)
    sources = [run.data(location.task)]
    for name in (location.method, *params.rows_before(location.method)):
        method = params.methods[name]
        if params.reads_outputs(method, location.task):
            sources += run.teacher(location.task, params.teacher_of(location.task, method))
        sources += run.start(method)
    return list({(origin.part, origin.source): origin for origin in sources}.values())


@dataclass(frozen=True)
class _Run:
    params: Params
    layout: Layout

    def data(self, task: str) -> Origin:
        if isinstance(self.params.tasks[task].source, NeighbourPairs):
            return self.origin(f"data of {task}, pairs of Wikipedia's sentences", "Wikipedia", "own files: ")
        return self.origin(f"data of {task}", f"task {task}", "own files: ")

    def teacher(self, task: str, name: str) -> list[Origin]:
        teacher, title = self.params.teachers[name], f"teacher {name} of {task}"
        if teacher.model is not None:
            how = "a linear layer over " if teacher.tuning.kind == "probe" else "fine-tuned here from "
            return [self.model(teacher.model, title, how)]
        how = "answers in " if teacher.tuning.kind == "answers" else "fine-tuned elsewhere, in "
        return [self.origin(title, title, how)]

    def start(self, method: Method) -> Iterator[Origin]:
        """Yield the origin of what a student starts from: word vectors, pieces, layers or texts."""
        settings, params = self.params.students[method.student], self.params
        if settings.source_model is not None:
            yield self.model(settings.source_model, "its layers" if settings.pretrained else "its word pieces")
        elif settings.word_vectors and method.start != "random":
            yield self.word_vectors("its word vectors, at the start")
        if (encoder := params.encoders.get(method.start)) is not None:
            yield self.origin("texts of the encoder it starts from", "Wikipedia", "own files: ")
            if isinstance(encoder, Encoder):
                yield self.model(params.sentence_vectors.model, "teacher of the encoder it starts from")
        if joint := params.joint.get(method.start):
            for task in joint.tasks:
                yield self.data(task)
                yield from self.teacher(task, params.teacher_of(task, joint))

    def word_vectors(self, title: str) -> Origin:
        """Return the origin of word vectors: those of a model, or of a file."""
        model = getattr(self.params.vocabulary.vectors, "model", None)
        return self.origin(title, "word vectors") if model is None else self.model(model, title)

    def model(self, name: str, title: str, how: str = "") -> Origin:
        origin = self.origin(title, f"model {name}")
        return replace(origin, source=f"{how}model {name}, {origin.source}")

    def origin(self, title: str, what: str, how: str = "") -> Origin:
        """Return the origin of one of the run's sources.

        :param what: see :class:`~pipeline_lib.params.sources.RunSource`.
        :param how: what to write before the names of the user's own files.
        """
        source, inputs = self.params.sources()[what], Path(self.params.inputs)
        text, hub = how + ", ".join(path for _, path in source.paths), None
        if source.packages:
            more = " and its other parts" if isinstance(source.settings, PackageParts) else ""
            text = f"package {source.packages[0].requirement}{more}"
        elif source.hub:
            text = f"{source.hub}, revision {source.settings.revision}"
            # A local folder in the hub's layout is used instead of the hub.
            hub = None if source.files(inputs) else source.hub
        text += provenance_text(source, self.layout)
        return Origin(title, text, declared_licences(source, inputs, self.layout), hub, source.reader != MODELS)
