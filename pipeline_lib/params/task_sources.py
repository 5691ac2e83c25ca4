"""Where a task's text comes from, in params.yaml: packages, the user's files, GLUE, the hub."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline_lib.params.base import DataOnHub, Fraction, InFiles, InPackage, Probability, Section
from pipeline_lib.params.texts import Tables

Split = Annotated[str, Field(pattern=r"^(train|all|unlabelled|(dev|test)(_[a-z0-9]+)?)$")]
"""A task can have more dev and test sets, as MNLI does: dev_mismatched, test_mismatched.  Texts of
``unlabelled``, whatever its columns, join the transfer sets that ask for them, without a label."""


class SplitFiles(Tables):
    """The files of a task by split.

    The files themselves tell their ``encoding``, and whether their cells are ``quoted``; where that is wrong, both may
    be set.
    """

    files: dict[Split, str]
    encoding: str | None = None
    quoted: bool | None = None


class PackageFiles(SplitFiles, InPackage):
    """Text files inside a package of the Python package index."""


class OwnFiles(SplitFiles, InFiles):
    """The user's own files.

    A split is one file, or a list of files with the same columns, which are read one after the other.
    """

    files: dict[Split, str | list[str]]

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


class HubDataset(DataOnHub):
    """A data set on the hub."""

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
