"""An encoder's training data: sentences with their target vectors."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from tokenizers import Tokenizer

from pipeline_lib.models.students.tokenise import mask_sign, numbering
from pipeline_lib.shards.columns import column_suffixes
from pipeline_lib.shards.masking import signed_sentences
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.vectors import StoredVectors, vector_tables
from pipeline_lib.text.pieces import Pieces
from pipeline_lib.text.ragged import Sentences


@dataclass(frozen=True)
class Corpus:
    """Shard sets of (sentences, their vectors, limit): only the first ``limit`` rows are used; None: all."""

    sets: list[tuple[ShardSet, ShardSet, int | None]]

    @property
    def digest(self) -> list[Any]:
        """The content of the corpus."""
        return [(a.manifest.digest, b.manifest.digest, limit) for a, b, limit in self.sets]

    def read(self, tokenizer: Tokenizer | Pieces, max_words: int) -> Sentences:
        """Return all sentences, tokenized, a pair as two, with the target ``vectors``, still in the files."""
        texts: list[str] = []
        for rows, _, side in self._parts():
            texts += signed_sentences(rows, side, lambda: mask_sign(tokenizer))
        return replace(numbering(tokenizer).number(texts, max_words), targets={"vectors": self.vectors()})

    def vectors(self) -> StoredVectors:
        """Return the sentences' vectors, in the order of :meth:`read`."""
        return StoredVectors([(vectors, side) for _, vectors, side in self._parts()])

    def _parts(self) -> Iterator[tuple[pa.Table, pa.Table, str]]:
        for inputs, outputs, limit in self.sets:
            left = limit
            for rows, vectors in vector_tables(inputs, outputs):
                rows, vectors = rows.slice(0, left), vectors.slice(0, left)
                left = None if left is None else left - rows.num_rows
                for side in column_suffixes(rows):
                    yield rows, vectors, side
