"""Texts without labels in params.yaml: Wikipedia's sentences, and how transfer sets are made of them."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline_lib.base.file_formats import Format
from pipeline_lib.params.base import DataOnHub, InFiles, InPackage, Positive, Probability, Section, TaskNames


class Tables(Section):
    """Files of rows; ``columns`` are the names for headerless files, else null."""

    format: Format
    columns: list[str] | None


class Tagger(Section):
    """The part-of-speech tagger: a spaCy pipeline by package name, NLTK's perceptron, or none.

    Without one, all words have one tag, and recipes cannot replace words by part of speech.
    """

    engine: Literal["spacy", "nltk", "none"]
    model: str | None

    @model_validator(mode="after")
    def _named(self) -> "Tagger":
        if (self.engine == "none") != (self.model is None):
            raise ValueError("`model` is null where `engine` is none, and there alone")
        return self


class Recipe(Section):
    """Which augmentation rules make a transfer set (Tang et al. 2019, section 3.3).

    A rule whose key is left out is not used.  ``ngram_max``, the longest n-gram, goes with ``p_ngram``.  ``tasks``
    restricts the set to those tasks; methods that train on it are rows of these tasks only.  ``unlabelled: true`` adds
    a task's unlabelled texts to its training set, and what the rules make of them.  It does not affect how a block is
    augmented, and is in no key.
    """

    p_mask: Probability = 0.0
    p_pos: Probability = 0.0
    p_ngram: Probability = 0.0
    ngram_max: Positive | None = None
    tasks: TaskNames = None
    unlabelled: Annotated[bool, Field(exclude=True)] = False

    @model_validator(mode="after")
    def _consistent(self) -> "Recipe":
        if self.p_mask + self.p_pos > 1.0:
            raise ValueError("p_mask + p_pos must be at most 1: a word falls under one rule")
        if self.p_ngram and self.ngram_max is None:
            raise ValueError("p_ngram goes with ngram_max, the words of the longest n-gram: give both or neither")
        return self

    def covers(self, task: str) -> bool:
        """Whether this transfer set is made for ``task``."""
        return self.tasks is None or task in self.tasks

    @property
    def changes_nothing(self) -> bool:
        """Whether the recipe keeps the original examples only."""
        return self.p_mask == self.p_pos == self.p_ngram == 0.0 and not self.unlabelled


class PackageCorpus(InPackage):
    """A file inside a package of the Python package index.

    ``tags``, which can be left out, select the wheel of one Python and platform, for packages with several.
    """

    tags: Annotated[str, Field(pattern=r"^(cp|py)\d+-\w+-\w+$")] | None = None
    file: str
    form: Literal["dump", "extracted", "text"]

    @model_validator(mode="after")
    def _consistent(self) -> "PackageCorpus":
        if self.tags and self.artifact == "sdist":
            raise ValueError("`tags` pick a wheel; a source distribution has none: null")
        return self


class CorpusFiles(InFiles):
    """The user's own files: paths and patterns, read in the order given."""

    files: Annotated[list[str], Field(min_length=1)]
    form: Literal["dump", "extracted", "parquet", "text"]


class HubCorpus(DataOnHub):
    """Cleaned articles on the hub."""

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
