"""Part-of-speech tags (Penn Treebank) for texts that are split into words already."""

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.params import Tagger
from pipeline_lib.storage.fingerprint import code_fingerprint, deciding, library_versions

TagWords = Callable[[Sequence[Sequence[str]], Sequence[Sequence[bool]]], Iterator[list[str]]]
"""(words, spaces) of many sentences to the tags of each, in order."""


def load_tagger(params: Tagger) -> TagWords:
    """Return the function that tags sentences.

    :raises DistilleryError: if the model or NLTK's data is not installed.
    """
    return _load_spacy(params.model) if params.engine == "spacy" else _load_nltk()


def tagging_code(params: Tagger) -> list[object]:
    """Return what decides the tags beside the settings: this code, the library and its model.

    :raises DistilleryError: if the model is not installed.
    """
    names = ("spacy", params.model) if params.engine == "spacy" else ("nltk",)
    try:
        return [code_fingerprint(__name__), deciding(library_versions(*names))]
    except PackageNotFoundError as error:
        raise _no_model(params.model) from error


def _no_model(model: str | None) -> DistilleryError:
    return DistilleryError(
        f"tagger.model: spaCy has no pipeline {model!r}. Install its package, or name another."
    )


def _load_spacy(model: str) -> TagWords:
    import spacy
    from spacy.tokens import Doc

    try:
        nlp = spacy.load(
            model, exclude=["parser", "lemmatizer", "ner", "attribute_ruler", "senter"]
        )
    except OSError as error:
        raise _no_model(model) from error

    def tag(
        words: Sequence[Sequence[str]], spaces: Sequence[Sequence[bool]]
    ) -> Iterator[list[str]]:
        docs = (
            Doc(nlp.vocab, words=list(w), spaces=list(s))
            for w, s in zip(words, spaces, strict=True)
        )
        for doc in nlp.pipe(docs, batch_size=256):
            yield [token.tag_ for token in doc]

    return tag


def _load_nltk() -> TagWords:
    from nltk.tag import PerceptronTagger

    try:
        tagger = PerceptronTagger(lang="eng")
    except LookupError as error:
        raise DistilleryError(
            "tagger.engine: NLTK's averaged_perceptron_tagger_eng is not on this machine. Run "
            "`python -m nltk.downloader averaged_perceptron_tagger_eng`, or use spacy."
        ) from error

    def tag(
        words: Sequence[Sequence[str]], spaces: Sequence[Sequence[bool]]
    ) -> Iterator[list[str]]:
        for sentence in words:
            yield [tag for _, tag in tagger.tag(list(sentence))]

    return tag
