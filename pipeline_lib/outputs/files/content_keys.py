"""Content keys, by which answers are looked up: hashes of the text as the teacher read it."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipeline_lib.base.hashing import string_keys
from pipeline_lib.shards.columns import column_suffixes
from pipeline_lib.shards.masking import signed_sentences

SEPARATOR = "\x1f"
"""Joins the two sentences of a pair before they are hashed."""


def content_keys(columns: Sequence[Sequence[str]]) -> np.ndarray:
    """Return the content key of each text or pair, uint64 (rows,), ignoring surrounding whitespace.

    :param columns: the first sentences and, for pairs, the second ones.
    """
    stripped = ([text.strip() for text in column] for column in columns)
    return string_keys([SEPARATOR.join(parts) for parts in zip(*stripped, strict=True)])


def row_keys(rows: pa.Table, mask: str) -> np.ndarray:
    """Return the content key of each row of a shard, uint64 (rows,).

    :param mask: what a masked word is replaced by.
    """
    return content_keys(read_texts(rows, mask))


def read_texts(rows: pa.Table, mask: str) -> list[list[str]]:
    """Return a shard's texts as the teacher reads them, by side."""
    return [signed_sentences(rows, side, lambda: mask) for side in column_suffixes(rows)]
