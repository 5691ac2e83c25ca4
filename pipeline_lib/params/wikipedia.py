"""``wikipedia`` of params.yaml: where articles come from, how they are split, what is kept."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline_lib.params.base import PinnedPackage, Positive, Revision, Section


class PackageCorpus(PinnedPackage):
    """A file inside a package of the Python package index.

    ``tags`` select the wheel of one Python and platform, for packages with several; else null.
    """

    kind: Literal["package"]
    tags: Annotated[str, Field(pattern=r"^(cp|py)\d+-\w+-\w+$")] | None
    file: str
    form: Literal["dump", "extracted", "text"]

    @model_validator(mode="after")
    def _consistent(self) -> "PackageCorpus":
        if self.tags and self.artifact == "sdist":
            raise ValueError("`tags` pick a wheel; a source distribution has none: null")
        return self


class CorpusFiles(Section):
    """The user's own files, below ``inputs``: paths and patterns, read in the order given."""

    kind: Literal["files"]
    files: Annotated[list[str], Field(min_length=1)]
    form: Literal["dump", "extracted", "parquet", "text"]


class HubCorpus(Section):
    """Cleaned articles on the Hugging Face hub at a pinned revision, or a folder in its layout."""

    kind: Literal["hub"]
    dataset: str
    config: str | None
    revision: Revision
    split: str


CorpusSource = Annotated[PackageCorpus | CorpusFiles | HubCorpus, Field(discriminator="kind")]


class Splitter(Section):
    """The sentence splitter; ``model`` is the spaCy pipeline of senter and parser, else null."""

    engine: Literal["sentencizer", "senter", "parser"]
    model: str | None

    @model_validator(mode="after")
    def _consistent(self) -> "Splitter":
        if (self.engine == "sentencizer") != (self.model is None):
            raise ValueError("`model` goes with senter and parser; a sentencizer has none: null")
        return self


class Validation(Section):
    """The validation set: its share of the articles, and its number of sentences."""

    share: Annotated[float, Field(gt=0.0, lt=1.0)]
    sentences: Positive


class Wikipedia(Section):
    """Unlabelled sentences: the first ``sentences`` of the source, and a validation set."""

    source: CorpusSource
    splitter: Splitter
    sentences: Positive
    validation: Validation
    shard_rows: Positive
