"""A prepared training set with the unlabelled texts beside it."""

from dataclasses import replace
from pathlib import Path

from pipeline_lib.params import UNLABELLED
from pipeline_lib.shards.shard_sets import ShardSet

UNLABELLED_BLOCK = "u"
"""How the names of the shards of unlabelled texts begin."""


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
    """Whether a shard of a training or transfer set is of unlabelled texts, by its name."""
    return Path(shard).name.startswith(UNLABELLED_BLOCK)
