"""Masked words of a transfer set, ``[MASK]``, written as the mask token that a pretrained model knows."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from pipeline_lib.base.text import MASK
from pipeline_lib.shards.columns import MASKED


def signed_sentences(rows: pa.Table, side: str, sign: Callable[[], str]) -> list[str]:
    """Return the texts of one side with ``sign()``, which is called only if it is needed, in place of masked words."""
    texts = rows[f"text{side}"].to_pylist()
    if f"rules{side}" not in rows.column_names:
        return texts
    rules = rows[f"rules{side}"].combine_chunks()
    masked = rules.flatten().to_numpy() == MASKED
    if not masked.any() or sign() == MASK:
        return texts
    words = rows[f"words{side}"].combine_chunks()
    ends = np.cumsum(rules.value_lengths().to_numpy())
    changed = np.unique(np.searchsorted(ends, np.flatnonzero(masked), side="right"))
    for row in changed.tolist():
        texts[row] = _signed(texts[row], words[row].as_py(), rules[row].as_py(), sign())
    return texts


def _signed(text: str, words: Sequence[str], rules: Sequence[int], sign: str) -> str:
    pieces, position = [], 0
    for word, rule in zip(words, rules, strict=True):
        # The text is its words with spaces between them, so the next match is the word itself.
        start = text.index(word, position)
        pieces += [text[position:start], sign if rule == MASKED else word]
        position = start + len(word)
    return "".join([*pieces, text[position:]])
