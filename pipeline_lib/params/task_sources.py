"""Where a task's text comes from, in params.yaml: packages, the user's files, GLUE, the hub."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline_lib.base.file_formats import Format
from pipeline_lib.params.base import Fraction, PinnedPackage, Probability, Revision, Section, Seed

Split = Annotated[str, Field(pattern=r"^(train|all|unlabelled|(dev|test)(_[a-z0-9]+)?)$")]
"""A task can have more dev and test sets, as MNLI does: dev_mismatched, test_mismatched.  Texts of
``unlabelled``, whatever its columns, join the transfer sets that ask for them, without a label."""


class PackageFiles(PinnedPackage):
    """Text files inside a package of the Python package index."""

    kind: Literal["package"]
    files: dict[Split, str]
    format: Format
    columns: list[str] | None
    encoding: str | None = None
    quoted: bool | None = None


class OwnFiles(Section):
    """The user's own files, below ``inputs``; ``columns`` are the names for a headerless file.

    A split is one file, or a list of files with the same columns, which are read one after the other.  The files
    themselves tell their ``encoding``, and whether their cells are ``quoted``; where that is wrong, both may be set.
    """

    kind: Literal["files"]
    files: dict[Split, str | list[str]]
    format: Format
    columns: list[str] | None
    encoding: str | None = None
    quoted: bool | None = None

    def paths_of(self, split: str) -> list[str]:
        """Return the paths of a split's files below ``inputs``."""
        files = self.files[split]
        return [files] if isinstance(files, str) else files


class GlueFolder(Section):
    """A folder in the official GLUE layout, below ``inputs``: TSV without quoting."""

    kind: Literal["glue"]
    folder: str
    files: dict[Split, str]
    columns: list[str] | None

    def paths_of(self, split: str) -> list[str]:
        """Return the path of a split's file below ``inputs``."""
        return [Path(self.folder, self.files[split]).as_posix()]


class HubDataset(Section):
    """A data set on the Hugging Face hub at a pinned revision, or a local folder in its layout."""

    kind: Literal["hub"]
    dataset: str
    config: str | None
    revision: Revision
    splits: dict[Split, str]


class NeighbourPairs(Section):
    """Pairs of Wikipedia's sentences: neighbours in an article, or not.

    Half of ``pairs`` are neighbours; of the others, a share of ``same_article`` come from the same
    article.  ``dev`` and ``test`` are shares of the articles.
    """

    kind: Literal["neighbours"]
    pairs: Annotated[int, Field(ge=2)]
    same_article: Probability
    dev: Annotated[float, Field(gt=0.0, lt=1.0)]
    test: Fraction
    seed: Seed

    @model_validator(mode="after")
    def _leaves_some(self) -> "NeighbourPairs":
        if self.dev + self.test >= 1.0:
            raise ValueError("`dev` and `test` leave nothing to train on")
        return self

    # The generated files are read like the user's own.

    @property
    def files(self) -> dict[str, str]:
        """The splits that are made."""
        names = ("train", "dev", "test") if self.test else ("train", "dev")
        return {name: f"{name}.parquet" for name in names}

    @property
    def format(self) -> str:
        """The files' format."""
        return "parquet"

    @property
    def columns(self) -> None:
        """The files name their columns: first, second, label."""
        return None


Source = Annotated[PackageFiles | OwnFiles | GlueFolder | HubDataset | NeighbourPairs, Field(discriminator="kind")]
