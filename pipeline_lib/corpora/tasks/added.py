"""Rows that were labelled after the splits were drawn.

They join the training set's blocks, and move no row of another split.  Most were unlabelled texts
before.  Their unlabelled rows stay in the blocks where they were, so that nothing made of those is
made again; training leaves these rows out, since it has the labelled ones.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa


def with_added(train: pa.Table, added: pa.Table, heldout: Iterable[pa.Table]) -> tuple[pa.Table, dict[str, int]]:
    """Return the training set with the rows labelled later, and what became of these.

    A row replaces those of its text, in the training set and before it in the file.  Texts of dev
    and test are left out: what is scored is not trained on.

    :param train: rows with their content keys, ``key``; :param added: rows with the same columns.
    :param heldout: the rows of the other splits.
    """
    scored = np.isin(_keys(added), np.concatenate([_keys(table) for table in heldout]))
    left = added.filter(pa.array(~scored))
    keys = _keys(left)
    # The last row of each text: the first in reverse.
    last = len(keys) - 1 - np.unique(keys[::-1], return_index=True)[1]
    left = left.take(pa.array(np.sort(last)))
    replaced = np.isin(_keys(train), keys)
    counts = {
        "rows": left.num_rows,
        "in_a_split": int(scored.sum()),
        "repeated": len(keys) - left.num_rows,
        "replaced": int(replaced.sum()),
    }
    return pa.concat_tables([train.filter(pa.array(~replaced)), left]), counts


def _keys(table: pa.Table) -> np.ndarray:
    return table["key"].to_numpy()
