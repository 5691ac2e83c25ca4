"""Part-of-speech tags (Penn Treebank) for texts that are already split into words."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from typing import Any, ClassVar

import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.params import Tagger
from pipeline_lib.shards.columns import column_suffixes
from pipeline_lib.shards.engine.passes import ShardPass
from pipeline_lib.shards.fingerprint import library_versions

TagWords = Callable[[Sequence[Sequence[str]], Sequence[Sequence[bool]]], Iterator[list[str]]]
"""Maps (words, spaces) of many sentences to the tags of each, in order."""
NO_TAG = "X"
"""The tag of every word where there is no tagger: Universal Dependencies' for other words."""


@lru_cache(maxsize=1)
def load_tagger(params: Tagger) -> TagWords:
    """Return the function that tags sentences."""
    if params.engine == "spacy":
        return _load_spacy(params.model)
    if params.engine == "nltk":
        return _load_nltk()
    return lambda words, _: ([NO_TAG] * len(sentence) for sentence in words)


@dataclass(frozen=True)
class TaggingPass(ShardPass):
    """The pass that tags words, in tables with ``words`` and ``spaces`` columns per sentence."""

    kind: ClassVar[str] = "tags"
    tagger: Tagger

    @property
    def settings(self) -> dict[str, Any]:
        """The tagger."""
        return self.tagger.model_dump()

    @property
    def libraries(self) -> tuple[str, ...]:
        """The library that tags, and its model."""
        if self.tagger.engine != "spacy":
            return () if self.tagger.engine == "none" else ("nltk",)
        try:
            library_versions(self.tagger.model)
        except PackageNotFoundError as error:
            raise _no_model(self.tagger.model) from error
        return ("spacy", self.tagger.model)

    def load(self) -> None:
        """Load the tagger."""
        load_tagger(self.tagger)

    def compute(self, rows: pa.Table) -> pa.Table:
        """Return a column ``tags`` (list of strings) for each sentence of the rows."""
        columns = {}
        for side in column_suffixes(rows):
            words, spaces = (rows[f"{name}{side}"].to_pylist() for name in ("words", "spaces"))
            tags = list(load_tagger(self.tagger)(words, spaces))
            columns[f"tags{side}"] = pa.array(tags, pa.list_(pa.string()))
        return pa.table(columns)


def _no_model(model: str | None) -> PotstillError:
    return PotstillError(f"tagger.model: spaCy has no pipeline {model!r}. Install its package, or name another.")


def _load_spacy(model: str) -> TagWords:
    import spacy
    from spacy.tokens import Doc

    try:
        nlp = spacy.load(model, exclude=["parser", "lemmatizer", "ner", "attribute_ruler", "senter"])
    except OSError as error:
        raise _no_model(model) from error
    if not {"tagger", "morphologizer"} & {*nlp.pipe_names}:
        raise PotstillError(
            f"tagger.model: the pipeline {model} has no tagger (it has {', '.join(nlp.pipe_names) or 'no component'}). "
            "Name another, or set `engine: none` and `model: null`."
        )

    def tag(words: Sequence[Sequence[str]], spaces: Sequence[Sequence[bool]]) -> Iterator[list[str]]:
        docs = (Doc(nlp.vocab, words=list(w), spaces=list(s)) for w, s in zip(words, spaces, strict=True))
        for doc in nlp.pipe(docs, batch_size=256):
            # Some languages' pipelines have coarse tags alone.
            yield [token.tag_ or token.pos_ for token in doc]

    return tag


def _load_nltk() -> TagWords:
    from nltk.tag import PerceptronTagger

    try:
        tagger = PerceptronTagger(lang="eng")
    except LookupError as error:
        raise PotstillError(
            "tagger.engine: NLTK's averaged_perceptron_tagger_eng is not on this machine. Run "
            "`python -m nltk.downloader averaged_perceptron_tagger_eng`, or use spacy."
        ) from error
    return lambda words, _: ([tag for _, tag in tagger.tag(list(sentence))] for sentence in words)
