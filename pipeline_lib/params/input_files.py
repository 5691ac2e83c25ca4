"""The user's own files: every path below ``inputs`` that params.yaml names, and who reads it."""

import glob
from dataclasses import dataclass
from pathlib import Path

from pipeline_lib.params.encoders import SentenceVectorFiles
from pipeline_lib.params.schema import Params
from pipeline_lib.params.tasks import Task

MODELS, WIKIPEDIA = "models", "wikipedia"
"""Who reads a file besides a task or a row of `retrieval`: the stages that fetch these."""


@dataclass(frozen=True)
class InputFile:
    """A file or folder that params.yaml names.

    :ivar reader: who reads it: ``tasks.<name>``, ``retrieval.<name>``, :data:`MODELS` or
        :data:`WIKIPEDIA`.
    :ivar key: of params.yaml; :ivar path: a file, or the folder of a model or a data set.
    :ivar holds: a file that has to be in the folder; None: the path is a file.
    """

    reader: str
    key: str
    path: Path
    holds: str | None = None

    @property
    def must_exist(self) -> Path:
        """The file without which nothing can be read."""
        return self.path / self.holds if self.holds else self.path


def input_files(params: Params) -> list[InputFile]:
    """Return every file that params.yaml names; an absolute path is taken as it is.

    A data set's local folder is included if it exists: otherwise the hub's is meant.
    """
    inputs = Path(params.inputs)
    files = [
        file for name, task in params.tasks.items() for file in _task_files(name, task, inputs)
    ]
    files += _model_files(params, inputs) + _vector_files(params, inputs)
    for name, row in params.retrieval.items():
        if row.source.kind == "files":
            folder, reader = inputs / row.source.folder, f"retrieval.{name}"
            for file in ("corpus.jsonl", "queries.jsonl"):
                files.append(InputFile(reader, f"{reader}.source.folder", folder / file))
            files.append(InputFile(reader, f"{reader}.source.qrels", folder / row.source.qrels))
    return files + _wikipedia_files(params, inputs)


def _task_files(name: str, task: Task, inputs: Path) -> list[InputFile]:
    source, reader = task.source, f"tasks.{name}"
    files = []
    if source.kind in ("files", "glue"):
        folder = inputs / source.folder if source.kind == "glue" else inputs
        files = [
            InputFile(reader, f"{reader}.source.files.{split}", folder / path)
            for split, path in source.files.items()
        ]
    elif source.kind == "hub" and (inputs / source.dataset).is_dir():
        files = [InputFile(reader, f"{reader}.source.dataset", inputs / source.dataset)]
    if task.lexicon:
        files.append(InputFile(reader, f"{reader}.lexicon", inputs / task.lexicon))
    return files


def _model_files(params: Params, inputs: Path) -> list[InputFile]:
    files = [
        InputFile(MODELS, f"models.{name}.path", inputs / source.path, "config.json")
        for name, source in params.models.items()
        if source.kind == "path"
    ]
    for name, teacher in params.teachers.items():
        key = f"teachers.{name}.tuning"
        for task in (task for task in params.tasks if teacher.knows(task)):
            if teacher.tuning.kind == "finished":
                folder = inputs / teacher.tuning.path(task)
                files.append(InputFile(MODELS, f"{key}.checkpoint", folder, "config.json"))
            if teacher.tuning.kind == "answers":
                files += [
                    InputFile(MODELS, f"{key}.files.{number}", inputs / path)
                    for number, path in enumerate(teacher.tuning.paths(task))
                ]
    return files


def _vector_files(params: Params, inputs: Path) -> list[InputFile]:
    files = []
    if isinstance(params.sentence_vectors, SentenceVectorFiles):
        files = [
            InputFile(MODELS, f"sentence_vectors.files.{number}", inputs / path)
            for number, path in enumerate(params.sentence_vectors.files)
        ]
    if params.vocabulary.vectors.kind == "file":
        path = inputs / params.vocabulary.vectors.path
        files.append(InputFile(MODELS, "vocabulary.vectors.path", path))
    return files


def _wikipedia_files(params: Params, inputs: Path) -> list[InputFile]:
    source = params.wikipedia and params.wikipedia.source
    if source is None or source.kind == "package":
        return []
    if source.kind == "hub":
        folder = inputs / source.dataset
        return [InputFile(WIKIPEDIA, "wikipedia.source.dataset", folder)] if folder.is_dir() else []
    files = []
    for number, pattern in enumerate(source.files):
        key = f"wikipedia.source.files.{number}"
        # A pattern that matches nothing is reported as a missing file.
        matches = sorted(glob.glob(str(inputs / pattern), recursive=True)) or [inputs / pattern]
        files += [InputFile(WIKIPEDIA, key, Path(path)) for path in matches]
    return files
