"""The pass that finds the words with the nearest vectors (Jiao et al. 2020, algorithm 1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.files import sha256_folder
from pipeline_lib.models.students.vocabulary import is_one_word, normaliser, vector_file
from pipeline_lib.models.students.word_vectors import model_vectors, model_words, read_vectors
from pipeline_lib.params import Vocabulary
from pipeline_lib.retrieval.scoring import CANDIDATE_ROWS, QUERY_ROWS, CosineScorer, best
from pipeline_lib.shards.columns import sentences
from pipeline_lib.shards.engine.passes import ShardPass
from pipeline_lib.shards.fingerprint import TRAINING_LIBRARIES

FILE_WORDS = 100_000
"""How many words of a file there are to choose from, its first: usually the most frequent."""


@dataclass(frozen=True)
class NearestWordsPass(ShardPass):
    """The pass that finds, for every word of a block, the words most similar by cosine.

    They are the whole words of a model's vocabulary, or the first :data:`FILE_WORDS` of a file; for
    a word that a file does not have among them, there are none.

    :ivar source: the folder of the model or of the file; :ivar digest: of what it holds.
    :ivar vocabulary: says which of the two it is, and whether case counts.
    :ivar count: words found for each.
    """

    kind: ClassVar[str] = "nearest_words"
    row_for_row: ClassVar[bool] = False
    source: Path
    digest: str
    vocabulary: Vocabulary
    count: int

    @classmethod
    def of(cls, vocabulary: Vocabulary, source: Path, count: int) -> Self:
        """Take the settings.

        :param source: from :func:`~pipeline_lib.models.students.vocabulary.vector_source`.
        """
        return cls(source, sha256_folder(source), vocabulary, count)

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the words besides the block, the code and the libraries."""
        return {
            "vectors": self.digest,
            "format": getattr(self.vocabulary.vectors, "format", None),
            "lowercase": self.vocabulary.lowercase,
            "count": self.count,
        }

    @property
    def libraries(self) -> tuple[str, ...]:
        """The distributions that affect the cosines' last digits."""
        return TRAINING_LIBRARIES

    def load(self) -> None:
        """Load the vectors that there are to choose from."""
        _loaded(self.source, self.digest, self.vocabulary)

    def compute(self, rows: pa.Table) -> pa.Table:
        """Return columns word and nearest (list<string>), for the distinct words that have any.

        Not for punctuation.  A word is not among its own nearest.
        """
        words = pc.unique(pc.list_flatten(sentences(rows, "words"))).to_pylist()
        words = [word for word in words if word.isalnum()]
        normalise = normaliser(self.vocabulary.lowercase)
        known, vectors = _loaded(self.source, self.digest, self.vocabulary)
        if self.vocabulary.vectors.kind == "model":
            queries = model_vectors(self.source, [normalise(word) for word in words])
        else:
            numbers = {word: number for number, word in enumerate(known)}
            words = [word for word in words if normalise(word) in numbers]
            queries = vectors[[numbers[normalise(word)] for word in words]]
        present = queries.any(axis=1)
        words = [word for word, is_there in zip(words, present, strict=True) if is_there]
        # One more: the first is usually the word itself.
        rows_of = nearest(queries[present], vectors, self.count + 1)
        lists = [
            [known[row] for row in ranked if known[row] != normalise(word)][: self.count]
            for word, ranked in zip(words, rows_of.tolist(), strict=True)
        ]
        columns = pa.array(words, pa.string()), pa.array(lists, pa.list_(pa.string()))
        return pa.table(columns, names=["word", "nearest"])


def nearest(queries: np.ndarray, vectors: np.ndarray, count: int) -> np.ndarray:
    """Return the rows of the vectors with the highest cosine, the highest first, (queries, count).

    :param queries: float32 (queries, width); :param vectors: float32 (vectors, width).
    """
    scorer, ranked = CosineScorer(), [np.zeros((0, min(count, len(vectors))), np.int64)]
    for start in range(0, len(queries), QUERY_ROWS):
        # Always as many, the last one again: products of one shape round every row alike.
        part = queries.take(np.arange(start, start + QUERY_ROWS), axis=0, mode="clip")
        parts = range(0, len(vectors), CANDIDATE_ROWS)
        blocks = ((first, vectors[first : first + CANDIDATE_ROWS]) for first in parts)
        ranked.append(best(scorer, part, blocks, count)[1])
    return np.concatenate(ranked)[: len(queries)]


@lru_cache(maxsize=1)
def _loaded(source: Path, digest: str, vocabulary: Vocabulary) -> tuple[Sequence[str], np.ndarray]:
    """Return the words to choose from, and their vectors, float32 (words, width)."""
    usable = partial(is_one_word, lowercase=vocabulary.lowercase)
    if vocabulary.vectors.kind == "model":
        words = [word for word in model_words(source) if usable(word)]
        return words, model_vectors(source, words)
    path, format = vector_file(source), vocabulary.vectors.format
    return read_vectors(path, format, [], FILE_WORDS, lambda word: word.isalpha() and usable(word))
