"""Texts without a label that stand beside a task's examples.

They are no examples: a teacher is not tuned on them, and a student that learns from labels does
not see them.  Transfer sets that ask for them (``unlabelled`` of a recipe) hold them, and what the
rules make of them, with the teacher's answers; the students' vocabulary has their words.  They lie
within the training set, as blocks of their own: a changed file leaves the examples' blocks alone.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.params import UNLABELLED
from pipeline_lib.storage.shards import ShardSet


def unlabelled_folder(train: Path) -> Path:
    """Return where the unlabelled texts of a prepared training set lie."""
    return train / UNLABELLED


def training_texts(train: Path) -> ShardSet:
    """Open a prepared training set with its unlabelled texts, where it has any, behind it."""
    examples, folder = ShardSet.open(train), unlabelled_folder(train)
    if not folder.exists():
        return examples
    others = ShardSet.open(folder).manifest.shards
    inside = [replace(shard, name=f"{UNLABELLED}/{shard.name}") for shard in others]
    shards = [*examples.manifest.shards, *inside]
    return ShardSet(train, replace(examples.manifest, shards=shards))


def texts_of_no_split(
    texts: pa.Table, splits: Iterable[pa.Table], task: str
) -> tuple[pa.Table, dict[str, int]]:
    """Return the texts that stand in no split, each once, and how many were left out, and why.

    A text of dev or test with the teacher's answer would be trained on what is scored.

    :param texts: rows with their content keys, ``key``; :param splits: rows of the splits.
    :raises DistilleryError: if none is left.
    """
    keys = texts["key"].to_numpy()
    known = np.concatenate([table["key"].to_numpy() for table in splits])
    elsewhere = np.isin(keys, known)
    first = np.zeros(len(keys), bool)
    first[np.unique(keys, return_index=True)[1]] = True
    kept = texts.filter(pa.array(first & ~elsewhere))
    if not kept.num_rows:
        raise DistilleryError(
            f"tasks.{task}: all {len(keys):,} unlabelled texts stand in a split too. Take the file "
            "out of `source.files`, or put others into it."
        )
    counts = {"in_a_split": int(elsewhere.sum()), "repeated": int((~first & ~elsewhere).sum())}
    return kept, counts
