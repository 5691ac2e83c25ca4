"""The token ids of stored rows: by words, by word pieces, or as a model reads its input."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer

from pipeline_lib.base.text import MASK
from pipeline_lib.shards.columns import column_suffixes, whole
from pipeline_lib.shards.masking import signed_sentences
from pipeline_lib.text.fast_tokenizer import WordNumbers
from pipeline_lib.text.pieces import Pieces

Lists = tuple[np.ndarray, np.ndarray]
"""The token ids of all rows, concatenated, int32, and each row's length, int64."""


def word_lists(rows: pa.Table, tokenizer: Tokenizer, max_words: int) -> dict[str, Lists]:
    """Return the word ids of each sentence, as columns ids and ids_2."""
    return {f"ids{side}": _words(rows[f"words{side}"], tokenizer, max_words) for side in column_suffixes(rows)}


def piece_lists(rows: pa.Table, pieces: Pieces, limit: int) -> dict[str, Lists]:
    """Return the piece ids of each sentence separately, as columns ids and ids_2."""
    columns = {}
    for side in column_suffixes(rows):
        texts = signed_sentences(rows, side, lambda: pieces.mask_sign)
        numbered = pieces.number(texts, limit)
        columns[f"ids{side}"] = numbered.ids, numbered.lengths
    return columns


def sequence_lists(rows: pa.Table, pieces: Pieces, limit: int) -> dict[str, Lists]:
    """Return the piece ids of each input, as columns ids and, for pairs, segments."""
    sides = column_suffixes(rows)
    texts = [signed_sentences(rows, side, lambda: pieces.mask_sign) for side in sides]
    numbered = pieces.number(texts[0] if len(sides) == 1 else zip(*texts, strict=True), limit)
    columns = {"ids": (numbered.ids, numbered.lengths)}
    if len(sides) == 2 and pieces.segments:
        # An empty shard of pairs has no segments, but still needs the column.
        segments = numbered.ids[:0] if numbered.segments is None else numbered.segments
        columns["segments"] = segments, numbered.lengths
    return columns


def _words(column: pa.ChunkedArray, tokenizer: Tokenizer, max_words: int) -> Lists:
    """Return the ids of all words, and each row's length."""
    lists = whole(column)
    # A text without a word is one unknown word, as where texts are read.
    unknown = pa.scalar([MASK], lists.type)
    lists = pc.if_else(pc.equal(pc.list_value_length(lists), 0), unknown, lists)
    encoded = lists.flatten().dictionary_encode()
    numbers, counts = WordNumbers(tokenizer).of_words(encoded.dictionary.to_pylist())
    # A word that is read by its pieces has several ids.
    of_words = pa.LargeListArray.from_arrays(list_ends(counts), numbers).take(encoded.indices)
    ids = of_words.flatten().to_numpy()
    ends = list_ends(counts[encoded.indices.to_numpy()])
    lengths = np.diff(ends[list_ends(pc.list_value_length(lists).to_numpy())])
    starts = np.cumsum(lengths) - lengths
    inside = np.arange(len(ids)) - np.repeat(starts, lengths) < max_words
    return ids[inside], np.minimum(lengths, max_words)


def list_ends(lengths: np.ndarray) -> np.ndarray:
    """Return where lists end that lie one after the other, after a 0, int64 (lists + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
