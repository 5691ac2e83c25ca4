"""Unlabelled texts beside a task's examples.

They are not examples: a teacher is not tuned on them, and a student that learns from labels does not see them.
Transfer sets that ask for them (``unlabelled`` of a recipe) contain them, and what the rules make of them, with the
teacher's answers; the students' vocabulary includes their words. They are stored within the training set, in
separate blocks: a changed file leaves the examples' blocks alone.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError


def texts_of_no_split(texts: pa.Table, splits: Iterable[pa.Table], task: str) -> tuple[pa.Table, dict[str, int]]:
    """Return the texts that are in no split, each once, and how many were left out, and why.

    To train on the teacher's answer to a text of dev or test would be to train on what is scored.

    :param texts: rows with their content keys, ``key``; :param splits: rows of the splits.
    """
    keys = texts["key"].to_numpy()
    known = np.concatenate([table["key"].to_numpy() for table in splits])
    elsewhere = np.isin(keys, known)
    first = np.zeros(len(keys), bool)
    first[np.unique(keys, return_index=True)[1]] = True
    kept = texts.filter(pa.array(first & ~elsewhere))
    if not kept.num_rows:
        raise PotstillError(
            f"tasks.{task}: all {len(keys):,} unlabelled texts are in a split too. Take the file "
            "out of `source.files`, or put others into it."
        )
    counts = {"in_a_split": int(elsewhere.sum()), "repeated": int((~first & ~elsewhere).sum())}
    return kept, counts
