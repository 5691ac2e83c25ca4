"""A prepared training set with the unlabelled texts beside it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.params import UNLABELLED
from pipeline_lib.shards.shard_sets import ShardSet

UNLABELLED_BLOCK, POOL_BLOCK = "u", "p"
"""How the names of the shards of unlabelled texts begin: of the task's own, and of its pool's."""


def unlabelled_folder(train: Path) -> Path:
    """Return the folder of the unlabelled texts of a prepared training set."""
    return train / UNLABELLED


def training_texts(train: Path) -> ShardSet:
    """Open a prepared training set, followed by its unlabelled texts if it has any."""
    examples, folder = ShardSet.open(train), unlabelled_folder(train)
    if not folder.exists():
        return examples
    others = ShardSet.open(folder).manifest.shards
    inside = [replace(shard, name=f"{UNLABELLED}/{shard.name}") for shard in others]
    shards = [*examples.manifest.shards, *inside]
    return ShardSet(train, replace(examples.manifest, shards=shards))


def is_unlabelled(shard: str) -> bool:
    """Whether a shard of a training or transfer set is one of the unlabelled texts, by its name."""
    return Path(shard).name.startswith((UNLABELLED_BLOCK, POOL_BLOCK))


def own_unlabelled(train: Path) -> np.ndarray:
    """Return the keys of a task's own unlabelled texts, those of its pool apart, uint64 (rows,)."""
    texts = ShardSet.open(unlabelled_folder(train))
    names = [shard.name for shard in texts.manifest.shards]
    keys = [
        table["key"].to_numpy()
        for name, table in zip(names, texts.tables(), strict=True)
        if name.startswith(UNLABELLED_BLOCK)
    ]
    return np.concatenate([np.empty(0, np.uint64), *keys])


def labelled_later(train: Path) -> np.ndarray:
    """Return the keys of the training rows that were unlabelled texts before, uint64 (rows,).

    Those stay among the unlabelled texts too.
    """
    folder = unlabelled_folder(train)
    if not folder.exists():
        return np.empty(0, np.uint64)
    keys = (ShardSet.open(path).table()["key"].to_numpy() for path in (train, folder))
    return np.intersect1d(*keys)


def labelled_at_first(train: Path) -> pa.Table:
    """Return a prepared training set without the rows that were unlabelled texts before.

    What is counted without them, such as the words that replacements are drawn from, does not
    change with each label that is added.
    """
    examples, later = ShardSet.open(train).table(), labelled_later(train)
    if not len(later):
        return examples
    return examples.filter(pa.array(~np.isin(examples["key"].to_numpy(), later)))
