"""Which rows a catalogue does not have yet."""

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.retrieval.sentence_rows import Rows
from pipeline_lib.shards.seen_keys import SeenKeys


class NewRows:
    """Selects rows not seen before: by their ids, or by their texts if they have none.

    It stores 16 to 40 bytes per row with ids, half of that without.
    """

    def __init__(self) -> None:
        self._ids, self._rows = SeenKeys(), SeenKeys()
        self.left_out = {"empty": 0, "known": 0}

    def take(self, rows: Rows) -> Rows:
        """Return the rows that are new, without those that have no text, which are counted."""
        kept = rows.filled()
        if kept.ids is None:
            new = self._rows.add(string_keys(kept.texts))
        else:
            pairs = [f"{row_id}\x1f{text}" for row_id, text in zip(kept.ids, kept.texts, strict=True)]
            new, unknown = self._rows.add(string_keys(pairs)), self._ids.add(string_keys(kept.ids))
            if (changed := np.flatnonzero(new & ~unknown)).size:
                raise PotstillError(
                    f"id {kept.ids[changed[0]]!r}: has another text already. Give the changed "
                    "text an id of its own, or build the index again from all rows."
                )
        self.left_out["empty"] += len(rows) - len(kept)
        self.left_out["known"] += len(kept) - int(new.sum())
        return kept.chosen(new)
