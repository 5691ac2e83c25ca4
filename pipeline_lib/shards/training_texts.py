"""A prepared training set with the unlabelled texts beside it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.params import UNLABELLED
from pipeline_lib.shards.shard_sets import ShardSet


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


def labelled_at_first(train: Path) -> pa.Table:
    """Return a prepared training set without the rows that were unlabelled texts before.

    Those stay among the unlabelled texts too.  What is counted without them, such as the words that
    replacements are drawn from, does not change with each label that is added.
    """
    examples, folder = ShardSet.open(train).table(), unlabelled_folder(train)
    if not folder.exists():
        return examples
    before = ShardSet.open(folder).table()["key"].to_numpy()
    later = np.isin(examples["key"].to_numpy(), before)
    return examples.filter(pa.array(~later)) if later.any() else examples
