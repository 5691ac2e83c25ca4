"""An encoder's training data: sentences with their target vectors."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from pipeline_lib.models.students.tokenise import mask_sign, numbering
from pipeline_lib.shards.columns import column_suffixes, matrix
from pipeline_lib.shards.masking import signed_sentences
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.vectors import ChosenVectors, StoredVectors, vector_tables
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
        vectors = self.vectors()
        if isinstance(vectors, ChosenVectors):
            texts = [texts[row] for row in vectors.rows.tolist()]
        numbered = numbering(tokenizer).number(texts, max_words)
        return replace(numbered, targets={"vectors": vectors})

    def vectors(self) -> StoredVectors | ChosenVectors:
        """Return the vectors of the sentences that have one, in the order of :meth:`read`."""
        parts = [(vectors, side) for _, vectors, side in self._parts()]
        stored = StoredVectors(parts)
        if not any(outputs.manifest.counts.get("unanswered") for _, outputs, _ in self.sets):
            return stored
        known = np.concatenate([_have_vector(*part) for part in parts])
        return ChosenVectors(stored, np.flatnonzero(known))

    @property
    def unanswered(self) -> int:
        """The number of sentences left out because they have no vector."""
        vectors = self.vectors()
        return len(vectors.stored) - len(vectors) if isinstance(vectors, ChosenVectors) else 0

    def _parts(self) -> Iterator[tuple[pa.Table, pa.Table, str]]:
        for inputs, outputs, limit in self.sets:
            left = limit
            for rows, vectors in vector_tables(inputs, outputs):
                rows, vectors = rows.slice(0, left), vectors.slice(0, left)
                left = None if left is None else left - rows.num_rows
                for side in column_suffixes(rows):
                    yield rows, vectors, side


def _have_vector(table: pa.Table, side: str) -> np.ndarray:
    """Return a mask of the rows with a vector for one side, bool (rows,); missing ones are NaN."""
    scale = f"scale{side}"
    if scale in table.column_names:
        return ~np.isnan(table[scale].to_numpy())
    return ~np.isnan(matrix(table[f"vector{side}"])[:, 0])
