"""The words that can take the place of each word of a block (Jiao et al. 2020, algorithm 1).

Two passes find them, which the augmentation of the block then draws from: a masked language model's
predictions, for words of a single piece, and the words with the nearest vectors, for the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.shards.columns import column_suffixes, whole


def with_candidates(examples: pa.Table, nearest: pa.Table, predictions: pa.Table | None = None) -> pa.Table:
    """Return a block's examples with a column ``candidates`` for each of their sentences.

    It has, for each word, a list of words, or null: list<list<string>>.

    :param nearest: columns word (string) and nearest (list<string>).
    :param predictions: row for row, ``predicted`` for each sentence: list<list<string>>, null where there is none.
    """
    known, lists = (whole(nearest[name]) for name in ("word", "nearest"))
    for side in column_suffixes(examples):
        words = whole(examples[f"words{side}"])
        candidates = lists.take(pc.index_in(words.flatten(), value_set=known))
        if predictions is not None:
            predicted = whole(predictions[f"predicted{side}"]).flatten()
            candidates = pc.coalesce(predicted, candidates)
        column = pa.ListArray.from_arrays(words.offsets, candidates)
        examples = examples.append_column(f"candidates{side}", column)
    return examples


@dataclass(frozen=True)
class Candidates:
    """The candidates of all words of a block's sentences of one side, as flat arrays.

    :ivar words: the distinct ones; :ivar ids: those of each word, one list after the other.
    :ivar starts: where each word's list starts, int64 (words,); :ivar counts: its length.
    """

    words: Sequence[str]
    ids: np.ndarray
    starts: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, examples: pa.Table, side: str, first_id: int) -> "Candidates":
        """Read the column that :func:`with_candidates` appended; without it there are none.

        :param first_id: the id of the first of the distinct words.
        """
        none = np.zeros(0, np.int64)
        if f"candidates{side}" not in examples.column_names:
            return cls([], none, none, none)
        lists = whole(examples[f"candidates{side}"]).flatten()
        encoded = lists.flatten().dictionary_encode()
        counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
        ids = encoded.indices.to_numpy().astype(np.int64) + first_id
        return cls(encoded.dictionary.to_pylist(), ids, np.cumsum(counts) - counts, counts)

    def draw(self, chosen: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw a candidate of each chosen word, all with the same probability.

        :param chosen: the words' numbers; :param u: uniform draws in [0, 1).
        :returns: the words that have candidates, and the ids drawn.
        """
        possible = self.counts[chosen] > 0
        chosen, u = chosen[possible], u[possible]
        return chosen, self.ids[self.starts[chosen] + (u * self.counts[chosen]).astype(np.int64)]
