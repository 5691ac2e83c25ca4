"""The sentences that encoders are trained on."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline_lib.base.layout import Layout
from pipeline_lib.outputs.files.keyed_table import read_texts
from pipeline_lib.params import Params
from pipeline_lib.shards.shard_sets import ShardSet


@dataclass(frozen=True)
class SentenceSet:
    """Folders of sentences that encoders are trained on and of their vectors, and the most rows that any reads."""

    inputs: Path
    vectors: Path
    limit: int | None = None


def sentence_sets(params: Params, layout: Layout) -> list[SentenceSet]:
    """Return the sets that encoders are trained on: Wikipedia's, and those of included tasks."""
    encoders = params.sentence_encoders().values()
    limits = [encoder.wikipedia for encoder in encoders]
    limit = None if None in limits else max(limits, default=0)
    sets = [
        SentenceSet(layout.wikipedia(split), layout.wikipedia_vectors(split), split_limit)
        for split, split_limit in (("train", limit), ("validation", None))
    ]
    joined = {key: None for encoder in encoders for key in encoder.tasks.items() if key[1]}
    return sets + [SentenceSet(layout.transfer(*key), layout.task_vectors(*key)) for key in joined]


def read_sides(sentence_set: SentenceSet, mask: str) -> Iterator[list[str]]:
    """Yield the sentences of a set up to its limit, a list for each side of a shard, with masked words as ``mask``."""
    left = sentence_set.limit
    for rows in ShardSet.open(sentence_set.inputs).tables():
        rows = rows.slice(0, left)
        left = None if left is None else left - rows.num_rows
        yield from read_texts(rows, mask)
