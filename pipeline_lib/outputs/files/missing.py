"""The rows of a set for which files have no answer, and the sentences without a vector."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pipeline_lib.base.files import write_json_lines
from pipeline_lib.base.probabilities import answered
from pipeline_lib.outputs.files.content_keys import content_keys, read_texts
from pipeline_lib.shards.columns import column_suffixes, matrix
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.vectors import StoredVectors

UNANSWERED = "unanswered.jsonl"
"""Next to the outputs: what has no answer, one per line."""
Line = dict[str, Any]
"""``shard`` and ``row`` of an input, the content ``key``, its ``text`` and ``text_pair``."""


def list_unanswered(outputs: ShardSet, lines: Iterable[Line]) -> int:
    """Write what has no answer, if anything, next to the outputs; return how many there are.

    :param lines: to write; read only if the outputs' manifest counts some.
    """
    count = outputs.manifest.counts.get("unanswered", 0)
    if count:
        write_json_lines(outputs.folder / UNANSWERED, lines)
    return count


def without_answer(inputs: ShardSet, outputs: ShardSet, mask: str) -> Iterator[Line]:
    """Yield a line for each row of a set that has no answer.

    :param mask: what a masked word is replaced by.
    """
    shards = zip(inputs.manifest.shards, inputs.tables(), outputs.tables(), strict=True)
    for shard, rows, stored in shards:
        missing = np.flatnonzero(~answered(matrix(stored["logits"])))
        yield from _lines(shard.name, missing, read_texts(rows.take(missing), mask))


def without_vector(inputs: ShardSet, outputs: ShardSet, mask: str) -> Iterator[Line]:
    """Yield a line for each sentence of a set that has no vector, separately for those of a pair.

    :param mask: what a masked word is replaced by.
    """
    shards = zip(inputs.manifest.shards, inputs.tables(), outputs.tables(), strict=True)
    for shard, rows, stored in shards:
        for side, texts in zip(column_suffixes(rows), read_texts(rows, mask), strict=True):
            vectors = StoredVectors([(stored, side)])[np.arange(stored.num_rows)]
            missing = np.flatnonzero(np.isnan(vectors).any(axis=1))
            yield from _lines(shard.name, missing, [[texts[row] for row in missing]])


def _lines(shard: str, rows: np.ndarray, columns: list[list[str]]) -> Iterator[Line]:
    for row, key, *texts in zip(rows.tolist(), content_keys(columns), *columns, strict=True):
        position = {"shard": shard, "row": row, "key": f"{key:016x}"}
        yield position | dict(zip(("text", "text_pair"), texts, strict=False))
