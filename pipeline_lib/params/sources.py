"""What a run is made from, as params.yaml names it: packages, the hub's data, the user's files."""

import glob
from dataclasses import dataclass
from pathlib import Path

from pipeline_lib.params.base import DataOnHub, PinnedPackage, Section
from pipeline_lib.params.models import (
    AnswerFiles,
    Finished,
    HubModel,
    LocalModel,
    ModelSource,
    PackageParts,
    Scored,
    VectorFile,
)
from pipeline_lib.params.task_sources import GlueFolder, OwnFiles
from pipeline_lib.params.texts import CorpusFiles

CONFIG = "config.json"
"""The file that every model's folder has."""
MODELS, WIKIPEDIA = "models", "wikipedia"
"""Who reads a file besides a task: the stages that fetch these."""


@dataclass(frozen=True)
class InputFile:
    """A file or folder of the user's own.

    :ivar reader: see :class:`RunSource`; :ivar key: of params.yaml.
    :ivar path: a file, or the folder of a model or a data set.
    :ivar holds: a file that has to be in the folder; None: the path is a file.
    """

    reader: str
    key: str
    path: Path
    holds: str | None = None

    @property
    def is_model(self) -> bool:
        """Whether it is the folder of a model."""
        return self.holds == CONFIG

    @property
    def must_exist(self) -> Path:
        """The file without which nothing can be read."""
        return self.path / self.holds if self.holds else self.path


@dataclass(frozen=True)
class RunSource:
    """Data, a model, a teacher or vectors, as params.yaml names them.

    Some name nothing outside the run, such as a teacher that is fine-tuned in it.

    :ivar what: what it is, such as ``task movies``.
    :ivar key: of params.yaml; :ivar settings: what stands there.
    :ivar reader: who reads its files: ``tasks.<name>``, :data:`MODELS` or :data:`WIKIPEDIA`.
    :ivar name: that of its row, if it has one; :ivar task: the one that a teacher knows.
    """

    what: str
    key: str
    settings: Section
    reader: str
    name: str = ""
    task: str = ""

    @property
    def packages(self) -> list[PinnedPackage]:
        """The packages of the package index that hold it."""
        if isinstance(self.settings, PackageParts):
            return list(self.settings.parts)
        return [self.settings] if isinstance(self.settings, PinnedPackage) else []

    @property
    def hub(self) -> str | None:
        """Its name on the Hugging Face hub."""
        if isinstance(self.settings, DataOnHub):
            return self.settings.dataset
        return self.settings.model if isinstance(self.settings, HubModel) else None

    @property
    def paths(self) -> list[tuple[str, str]]:
        """The paths below ``inputs`` that it names, each behind the rest of its key."""
        match self.settings:
            case OwnFiles() | GlueFolder():
                splits = self.settings.files
                return [(f"files.{split}", path) for split in splits for path in self.settings.paths_of(split)]
            case LocalModel(path=path) | VectorFile(path=path):
                return [("path", path)]
            case Finished():
                return [("checkpoint", self.settings.path(self.task))]
            case AnswerFiles():
                return _numbered(self.settings.paths(self.task))
            case Scored(prompt=str(path)):
                return [("prompt", path)]
            case CorpusFiles(files=files):
                return _numbered(files)
        return []

    def files(self, inputs: Path) -> list[InputFile]:
        """Return the files of its paths; an absolute path is taken as it is.

        Of what is on the hub, the folder is included if it exists: see :func:`hub_folder`.
        """
        files = [(f"{self.key}.{rest}", inputs / path) for rest, path in self.paths]
        if isinstance(self.settings, CorpusFiles):
            # A pattern that matches nothing is reported as a missing file.
            files = [
                (key, Path(match))
                for key, path in files
                for match in sorted(glob.glob(str(path), recursive=True)) or [path]
            ]
        if self.hub and (folder := hub_folder(self.hub, inputs)):
            is_model = isinstance(self.settings, HubModel)
            files = [(f"{self.key}.{'model' if is_model else 'dataset'}", folder)]
        holds = CONFIG if isinstance(self.settings, LocalModel | HubModel | Finished) else None
        return [InputFile(self.reader, key, path, holds) for key, path in files]


def hub_folder(name: str, inputs: Path) -> Path | None:
    """Return the folder of a data set or a model of the hub below ``inputs``, if it is there.

    It is read in place of the hub, which a machine may not reach.
    """
    folder = inputs / name
    return folder if folder.is_dir() else None


def model_folder(source: ModelSource, inputs: Path) -> Path | None:
    """Return the folder of a model that needs no fetching."""
    if isinstance(source, HubModel):
        return hub_folder(source.model, inputs)
    return inputs / source.path if isinstance(source, LocalModel) else None


def _numbered(paths: list[str]) -> list[tuple[str, str]]:
    return [(f"files.{number}", path) for number, path in enumerate(paths)]
