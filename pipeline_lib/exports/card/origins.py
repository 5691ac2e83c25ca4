"""Where a student's parts come from, and their declared licences."""

from dataclasses import dataclass, field
from pathlib import Path

from pipeline_lib.base.files import read_record
from pipeline_lib.base.layout import Layout, StudentPlace
from pipeline_lib.exports.card.card_data import Facts
from pipeline_lib.params import (
    AnswerFiles,
    Average,
    Encoder,
    Finished,
    HubCorpus,
    HubDataset,
    HubModel,
    LocalModel,
    Method,
    ModelVectors,
    NeighbourPairs,
    PackageCorpus,
    PackageFiles,
    PackageParts,
    Params,
    SentenceVectorFiles,
)
from pipeline_lib.sources.licences import card_licences, given_licences, package_licences


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
    parts = [_data(params, location.task)]
    for name in (location.method, *params.rows_before(location.method)):
        method = params.methods[name]
        if params.reads_outputs(method, location.task):
            teacher = params.teacher_of(location.task, method)
            parts += _teacher(params, location.layout, location.task, teacher)
        parts += _start(params, location, method)
    return list({(one.part, one.source): one for one in parts}.values())


def _data(params: Params, task: str) -> Origin:
    source, part = params.tasks[task].source, f"data of {task}"
    if isinstance(source, PackageFiles):
        declared = package_licences(source.requirement, source.artifact, source.sha256)
        return Origin(part, f"package {source.requirement}", declared, is_data=True)
    if isinstance(source, HubDataset):
        # A local folder in the hub's layout is used instead of the hub.
        is_local = (Path(params.inputs) / source.dataset).exists()
        description = f"{source.dataset}, revision {source.revision}"
        return Origin(part, description, hub=None if is_local else source.dataset, is_data=True)
    if isinstance(source, NeighbourPairs):
        return _wikipedia(params, f"{part}, pairs of Wikipedia's sentences")
    return Origin(part, f"own files: {', '.join(source.files.values())}", is_data=True)


def _wikipedia(params: Params, part: str) -> Origin:
    source = None if params.wikipedia is None else params.wikipedia.source
    if isinstance(source, PackageCorpus):
        declared = package_licences(source.requirement, source.artifact, source.sha256)
        return Origin(part, f"package {source.requirement}", declared, is_data=True)
    if isinstance(source, HubCorpus):
        is_local = (Path(params.inputs) / source.dataset).exists()
        return Origin(part, source.dataset, hub=None if is_local else source.dataset, is_data=True)
    return Origin(part, "own files", is_data=True)


def _teacher(params: Params, layout: Layout, task: str, name: str) -> list[Origin]:
    teacher, part = params.teachers[name], f"teacher {name} of {task}"
    tuning = teacher.tuning
    if isinstance(tuning, Average):
        return [origin for one in tuning.of for origin in _teacher(params, layout, task, one)]
    if isinstance(tuning, AnswerFiles):
        record = layout.teacher(task, name) / "answers.json"
        source = f"answers in {', '.join(tuning.paths(task))}"
        return [_given(part, source, record, tuning.provenance)]
    if isinstance(tuning, Finished):
        path = tuning.path(task)
        declared = card_licences(Path(params.inputs) / path)
        return [Origin(part, f"fine-tuned elsewhere, in {path}", declared)]
    return [_model(params, teacher.model, part, "fine-tuned here from ")]


def _given(part: str, source: str, record: Path, provenance: dict[str, str]) -> Origin:
    """Return the origin of answers or vectors given in files.

    :param record: the record written about them, with the files' own metadata.
    """
    metadata = read_record(record, "provenance")["provenance"] if record.exists() else {}
    metadata = metadata or provenance
    details = "; ".join(f"{key}: {value}" for key, value in metadata.items())
    return Origin(part, f"{source} ({details})" if details else source, given_licences(metadata))


def _vectors(params: Params, layout: Layout, part: str) -> Origin:
    """Return the origin of the sentence vectors that an encoder was trained on."""
    vectors = params.sentence_vectors
    if not isinstance(vectors, SentenceVectorFiles):
        return _model(params, vectors.model, part)
    record = layout.given_vectors / "vectors.json"
    return _given(
        part, f"sentence vectors in {', '.join(vectors.files)}", record, vectors.provenance
    )


def _start(params: Params, location: StudentPlace, method: Method) -> list[Origin]:
    """Return the origin of what a student starts from: word vectors, pieces, layers or texts."""
    settings, vectors = params.students[method.student], params.vocabulary.vectors
    parts = []
    if settings.source_model is not None:
        part = "its layers" if settings.pretrained else "its word pieces"
        parts.append(_model(params, settings.source_model, part))
    elif settings.word_vectors and method.start != "random":
        part = "its word vectors, at the start"
        is_model = isinstance(vectors, ModelVectors)
        parts.append(
            _model(params, vectors.model, part) if is_model else Origin(part, vectors.path)
        )
    encoder, joint = params.encoders.get(method.start), params.joint.get(method.start)
    if encoder is not None:
        parts.append(_wikipedia(params, "texts of the encoder it starts from"))
        if isinstance(encoder, Encoder):
            parts.append(_vectors(params, location.layout, "teacher of the encoder it starts from"))
    for task in joint.tasks if joint else ():
        teacher = params.teacher_of(task, joint)
        parts += [_data(params, task), *_teacher(params, location.layout, task, teacher)]
    return parts


def _model(params: Params, name: str, part: str, how: str = "") -> Origin:
    source = params.models[name]
    describe = f"{how}model {name}, {{}}".format
    if isinstance(source, HubModel):
        return Origin(
            part, describe(f"{source.model}, revision {source.revision}"), hub=source.model
        )
    if isinstance(source, LocalModel):
        declared = card_licences(Path(params.inputs) / source.path)
        return Origin(part, describe(source.path), declared)
    if isinstance(source, PackageParts):
        first = source.parts[0]
        declared = package_licences(first.requirement, first.artifact, first.sha256)
        return Origin(part, describe(f"package {first.requirement} and its other parts"), declared)
    pinned = source.requirement, source.artifact, source.sha256
    declared = package_licences(*pinned, folder=source.folder)
    return Origin(part, describe(f"package {source.requirement}"), declared)
