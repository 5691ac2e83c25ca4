"""The sentences that encoders are trained on, and those of them that have no vector in a file."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params
from pipeline_lib.storage.columns import column_suffixes
from pipeline_lib.storage.seen_keys import SeenKeys
from pipeline_lib.storage.shards import ShardSet
from pipeline_lib.storage.vectors import StoredVectors
from pipeline_lib.teachers.answers import UNANSWERED, content_keys, read_texts
from pipeline_lib.teachers.given_vectors import GivenVectors


@dataclass(frozen=True)
class SentenceSet:
    """A shard set whose sentences encoders are trained on.

    :ivar vectors: the place of their vectors; :ivar limit: rows that some encoder reads; None: all.
    """

    inputs: Path
    vectors: Path
    limit: int | None = None


def sentence_sets(params: Params, layout: Layout) -> list[SentenceSet]:
    """Return the sets that encoders are trained on: Wikipedia's, and the tasks' that join them."""
    encoders = params.sentence_encoders().values()
    limits = [encoder.wikipedia for encoder in encoders]
    limit = None if None in limits else max(limits, default=0)
    found = [
        SentenceSet(layout.wikipedia(split), layout.wikipedia_vectors(split), own)
        for split, own in (("train", limit), ("validation", None))
    ]
    joined = {own: None for encoder in encoders for own in encoder.tasks.items() if own[1]}
    return found + [SentenceSet(layout.transfer(*own), layout.task_vectors(*own)) for own in joined]


def read_sides(own: SentenceSet, mask: str) -> Iterator[list[str]]:
    """Yield the sentences of a set, as far as they are read, a list for each side of a shard.

    :param mask: what stands for a masked word.
    """
    left = own.limit
    for rows in ShardSet.open(own.inputs).tables():
        rows = rows.slice(0, left)
        left = None if left is None else left - rows.num_rows
        yield from read_texts(rows, mask)


def covered(own: SentenceSet, given: GivenVectors, mask: str) -> tuple[int, int]:
    """Return how many sentences of a set have a vector, and how many there are."""
    known = total = 0
    for texts in read_sides(own, mask):
        known += int((given.find(content_keys([texts])) >= 0).sum())
        total += len(texts)
    return known, total


def sentence_requests(
    sets: Sequence[SentenceSet], given: GivenVectors | None, mask: str
) -> Iterator[dict[str, str]]:
    """Yield key (hex) and text of each sentence of sets that has no vector, none twice.

    :param given: those that there are; :param mask: what stands for a masked word.
    """
    seen = SeenKeys()
    for texts in (texts for own in sets for texts in read_sides(own, mask)):
        keys = content_keys([texts])
        wanted = seen.add(keys)
        if given is not None:
            wanted &= given.find(keys) < 0
        for row in np.flatnonzero(wanted).tolist():
            yield {"key": f"{keys[row]:016x}", "text": texts[row].strip()}


def embedding_request(row: dict[str, str], model: str) -> dict[str, Any]:
    """Return a sentence as a line of an OpenAI batch of embeddings; its custom_id is the key."""
    body = {"model": model, "input": row["text"], "encoding_format": "float"}
    place = {"method": "POST", "url": "/v1/embeddings"}
    return {"custom_id": row["key"], **place, "body": body}


def list_without_vector(inputs: ShardSet, outputs: ShardSet, mask: str) -> int:
    """Write the sentences of a set without a vector beside the vectors, if any; return how many.

    :param mask: what stands for a masked word.
    """
    count = outputs.manifest.counts.get("unanswered", 0)
    if count:
        with (
            atomic_path(outputs.folder / UNANSWERED) as path,
            path.open("w", encoding="utf-8") as stream,
        ):
            for row in _without_vector(inputs, outputs, mask):
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def _without_vector(inputs: ShardSet, outputs: ShardSet, mask: str) -> Iterator[dict[str, Any]]:
    shards = zip(inputs.manifest.shards, inputs.tables(), outputs.tables(), strict=True)
    for shard, rows, found in shards:
        for side, texts in zip(column_suffixes(rows), read_texts(rows, mask), strict=True):
            missing = _missing(found, side)
            keys = content_keys([[texts[row] for row in missing]])
            for row, key in zip(missing, keys.tolist(), strict=True):
                place = {"shard": shard.name, "row": row, "key": f"{key:016x}"}
                yield place | {"text": texts[row]}


def _missing(table: pa.Table, side: str) -> list[int]:
    vectors = StoredVectors([(table, side)])[np.arange(table.num_rows)]
    return np.flatnonzero(np.isnan(vectors).any(axis=1)).tolist()
