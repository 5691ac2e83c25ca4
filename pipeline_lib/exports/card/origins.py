"""Where a student's parts come from, and their declared licences."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline_lib.base.layout import Layout
from pipeline_lib.exports.card.card_data import Facts
from pipeline_lib.params import Average, Encoder, Method, NeighbourPairs, PackageParts, Params
from pipeline_lib.params.sources import MODELS
from pipeline_lib.sources.run_sources import declared_licences, provenance_text


@dataclass(frozen=True)
class Origin:
    """A part of a student.

    :ivar part: what it is; :ivar source: where it comes from.
    :ivar licences: which licence is declared by whom; empty if none is.
    :ivar hub: its name on the Hugging Face hub, if it was taken from there.
    :ivar is_data: whether it is a data set rather than a model.
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
    parts = [_data(params, location.layout, location.task)]
    for name in (location.method, *params.rows_before(location.method)):
        method = params.methods[name]
        if params.reads_outputs(method, location.task):
            teacher = params.teacher_of(location.task, method)
            parts += _teacher(params, location.layout, location.task, teacher)
        parts += _start(params, location.layout, method)
    return list({(one.part, one.source): one for one in parts}.values())


def _data(params: Params, layout: Layout, task: str) -> Origin:
    part = f"data of {task}"
    if isinstance(params.tasks[task].source, NeighbourPairs):
        return _wikipedia(params, layout, f"{part}, pairs of Wikipedia's sentences")
    return _origin(params, layout, part, f"task {task}", "own files: ")


def _wikipedia(params: Params, layout: Layout, part: str) -> Origin:
    return _origin(params, layout, part, "Wikipedia", "own files: ")


def _teacher(params: Params, layout: Layout, task: str, name: str) -> list[Origin]:
    teacher, part = params.teachers[name], f"teacher {name} of {task}"
    if isinstance(teacher.tuning, Average):
        return [one for each in teacher.tuning.of for one in _teacher(params, layout, task, each)]
    if teacher.model is not None:
        return [_model(params, layout, teacher.model, part, "fine-tuned here from ")]
    how = "answers in " if teacher.tuning.kind == "answers" else "fine-tuned elsewhere, in "
    return [_origin(params, layout, part, part, how)]


def _start(params: Params, layout: Layout, method: Method) -> list[Origin]:
    """Return the origin of what a student starts from: word vectors, pieces, layers or texts."""
    settings = params.students[method.student]
    parts = []
    if settings.source_model is not None:
        part = "its layers" if settings.pretrained else "its word pieces"
        parts.append(_model(params, layout, settings.source_model, part))
    elif settings.word_vectors and method.start != "random":
        part = "its word vectors, at the start"
        parts.append(_vectors(params, layout, part, "word vectors"))
    encoder, joint = params.encoders.get(method.start), params.joint.get(method.start)
    if encoder is not None:
        parts.append(_wikipedia(params, layout, "texts of the encoder it starts from"))
        if isinstance(encoder, Encoder):
            part, what = "teacher of the encoder it starts from", "sentence vectors"
            parts.append(_vectors(params, layout, part, what, f"{what} in "))
    for task in joint.tasks if joint else ():
        teacher = params.teacher_of(task, joint)
        parts += [_data(params, layout, task), *_teacher(params, layout, task, teacher)]
    return parts


def _vectors(params: Params, layout: Layout, part: str, what: str, how: str = "") -> Origin:
    """Return the origin of vectors: those of a model, or of files."""
    model = getattr(params.sources()[what].settings, "model", None)
    if model is not None:
        return _model(params, layout, model, part)
    return _origin(params, layout, part, what, how)


def _model(params: Params, layout: Layout, name: str, part: str, how: str = "") -> Origin:
    origin = _origin(params, layout, part, f"model {name}")
    return replace(origin, source=f"{how}model {name}, {origin.source}")


def _origin(params: Params, layout: Layout, part: str, what: str, how: str = "") -> Origin:
    """Return the origin of one of the run's sources.

    :param what: see :class:`~pipeline_lib.params.sources.RunSource`.
    :param how: what to write before the names of the user's own files.
    """
    source, inputs = params.sources()[what], Path(params.inputs)
    text, hub = how + ", ".join(path for _, path in source.paths), None
    if source.packages:
        more = " and its other parts" if isinstance(source.settings, PackageParts) else ""
        text = f"package {source.packages[0].requirement}{more}"
    elif source.hub:
        text = f"{source.hub}, revision {source.settings.revision}"
        # A local folder in the hub's layout is used instead of the hub.
        hub = None if source.files(inputs) else source.hub
    text += provenance_text(source, layout)
    is_data = source.reader != MODELS
    return Origin(part, text, declared_licences(source, inputs, layout), hub, is_data)
