"""Paragraphs to sentences, and which sentences are worth keeping."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.corpora.wikipedia.markup import HOLE
from pipeline_lib.params import Splitter

LONGEST_PARAGRAPH = 100_000
"""Characters; longer ones are tables or lists that lost their markup, and are slow to parse."""
KEPT_WORDS = 50_000
"""Words that spaCy may keep: about 30 MB."""
WORDS = range(5, 61)
"""How many words a sentence has; words are separated by spaces."""
MIN_LETTERS = 0.7
"""The share of letters among the characters that are not spaces."""
MIN_FUNCTION_WORDS = 0.1
"""The share of English function words: lists of names, and other languages, have few."""
MAX_REPEATED = 0.5
"""The share of words that repeat an earlier one."""
COMPONENTS = {"senter": ["senter"], "parser": ["tok2vec", "parser"]}
"""What each engine needs of a spaCy pipeline."""


@dataclass(frozen=True)
class SentenceSplitter:
    """Maps paragraphs to the sentences of each, stripped; the version is that of spaCy, and of the model."""

    split: Callable[[Iterable[str]], Iterator[list[str]]]
    version: dict[str, str]


@lru_cache(maxsize=1)
def load_splitter(params: Splitter) -> SentenceSplitter:
    """Return spaCy's splitter: by punctuation (sentencizer), a small trained tagger (senter) or the parse (parser)."""
    import spacy

    version = {"spacy": spacy.__version__}
    if params.engine == "sentencizer":
        pipeline = spacy.blank("en")
        pipeline.add_pipe("sentencizer")
    else:
        pipeline = _load_pipeline(params)
        version["model"] = f"{pipeline.meta['name']} {pipeline.meta['version']}"

    def split(paragraphs: Iterable[str]) -> Iterator[list[str]]:
        # For speed, spaCy keeps all words that it has ever seen.  Once it has the common ones, new
        # ones are released again.
        enough = len(pipeline.vocab) > KEPT_WORDS
        with pipeline.memory_zone() if enough else nullcontext():
            for doc in pipeline.pipe(paragraphs, batch_size=64):
                sentences = (sentence.text.strip() for sentence in doc.sents)
                yield [sentence for sentence in sentences if sentence]

    return SentenceSplitter(split, version)


def _load_pipeline(params: Splitter) -> "Language":  # noqa: F821
    import spacy

    try:
        pipeline = spacy.load(params.model)
    except OSError as error:
        raise PotstillError(
            f"wikipedia.splitter.model: spaCy has no pipeline {params.model!r}. Install its package, or name another."
        ) from error
    for name in pipeline.component_names:
        if name not in COMPONENTS[params.engine]:
            pipeline.remove_pipe(name)
        elif name not in pipeline.pipe_names:
            pipeline.enable_pipe(name)
    if params.engine not in pipeline.pipe_names:
        raise PotstillError(
            f"wikipedia.splitter: the pipeline {params.model!r} has no {params.engine}. Use "
            "sentencizer, or name a pipeline that has one."
        )
    return pipeline


def fault_of(sentence: str, is_english: bool = True) -> str | None:
    """Return why a sentence is left out, or None if it is kept.

    Words are separated by spaces.

    - ``hole``: it contained a template or formula; ``markup``: it still contains markup;
    - ``short``, ``long``: fewer or more words than :data:`WORDS`;
    - ``fragment``: it does not begin with a capital or digit and end with a full stop or the like;
    - ``letters``: less than :data:`MIN_LETTERS` of its non-space characters are letters;
    - ``language``: it should be English, and less than :data:`MIN_FUNCTION_WORDS` of its words are function words;
    - ``repetitive``: more than :data:`MAX_REPEATED` of its words repeat an earlier one.
    """
    words = sentence.split()
    if HOLE in sentence:
        return "hole"
    if _MARKUP.search(sentence):
        return "markup"
    if len(words) not in WORDS:
        return "short" if len(words) < WORDS.start else "long"
    if not (_BEGINS.match(sentence) and _ENDS.search(sentence)):
        return "fragment"
    return _unlike_language(words, is_english)


_MARKUP = re.compile(r"\[\[|\]\]|\{\{|\}\}|\{\||\|\}|\|\||</?[A-Za-z]|={2,}|&[a-z]+;|https?://")
_OPENING = "\"'“‘«(["
_BEGINS = re.compile(rf"[{re.escape(_OPENING)}]*[^\W_a-zß-öø-ÿ]")
_ENDS = re.compile(r"[.!?…][\"'”’»)\]]*$")


def _unlike_language(words: list[str], is_english: bool) -> str | None:
    lowered = [word.lower().strip(_PUNCTUATION) for word in words]
    characters = sum(map(len, words))
    letters = sum(character.isalpha() for word in words for character in word)
    if letters < MIN_LETTERS * characters:
        return "letters"
    if is_english and sum(map(_function_words().__contains__, lowered)) < MIN_FUNCTION_WORDS * len(words):
        return "language"
    if len(words) - len(set(lowered)) > MAX_REPEATED * len(words):
        return "repetitive"
    return None


_PUNCTUATION = ".,;:!?…\"'“”‘’«»()[]–—-"


def _function_words() -> set[str]:
    # Imported here: spaCy takes a second, and reading parameters does not need it.
    from spacy.lang.en.stop_words import STOP_WORDS

    return STOP_WORDS
