"""Sentences with their ids, a batch at a time, and the distinct ones among them in blocks."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_json
from pipeline_lib.base.hashing import SeenKeys, string_keys

BLOCK_ROWS = 8192
"""Rows of a block on average; at most four times as many."""


@dataclass(frozen=True)
class Rows:
    """Some sentences, their ids if any, and the faults of rows that could not be read, whose text is empty."""

    texts: list[str]
    ids: list[str] | None = None
    faults: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, rows: slice) -> "Rows":
        return Rows(self.texts[rows], None if self.ids is None else self.ids[rows])

    @property
    def digest(self) -> str:
        """SHA-256 of the texts and ids."""
        return sha256_json([self.texts, self.ids])

    def table(self) -> pa.Table:
        """Return the columns text, and id if there are ids."""
        columns = {"text": self.texts} | ({} if self.ids is None else {"id": self.ids})
        return pa.table({name: pa.array(values, pa.large_string()) for name, values in columns.items()})

    def filled(self) -> "Rows":
        """Return the rows that have a text."""
        return self.chosen(np.fromiter((bool(text.strip()) for text in self.texts), bool))

    def chosen(self, mask: np.ndarray) -> "Rows":
        """Return the rows where ``mask``, bool (rows,), is true."""
        numbers = np.flatnonzero(mask).tolist()
        ids = None if self.ids is None else [self.ids[number] for number in numbers]
        return Rows([self.texts[number] for number in numbers], ids)


class DistinctRows:
    """The rows that have a text, each once; it holds 16 to 40 bytes per row with ids, half of that without.

    :ivar left_out: how many rows were empty, or equal to an earlier one.
    """

    def __init__(self) -> None:
        self._ids, self._rows = SeenKeys(), SeenKeys()
        self.left_out = {"empty": 0, "repeated": 0}

    def blocks(self, batches: Iterable[Rows], size: int = BLOCK_ROWS) -> Iterator[Rows]:
        """Yield the rows in blocks of about ``size``, each of which ends behind a row whose key says so.

        So a row that is added, removed or changed changes the block that it is in, and no other.
        """
        texts: list[str] = []
        ids: list[str] = []
        for batch in batches:
            rows, is_last = self._take(batch, size)
            ids += rows.ids or []
            for text, ends_block in zip(rows.texts, is_last, strict=True):
                texts.append(text)
                if ends_block or len(texts) == 4 * size:
                    yield Rows(texts, ids[: len(texts)] or None)
                    ids, texts = ids[len(texts) :], []
        if texts:
            yield Rows(texts, ids or None)

    def _take(self, batch: Rows, size: int) -> tuple[Rows, list[bool]]:
        """Return the new rows of a batch, and which of them end a block."""
        rows = batch.filled()
        if rows.ids is None:
            keys = string_keys(rows.texts)
            new = self._rows.add(keys)
        else:
            keys = string_keys([f"{row_id}\x1f{text}" for row_id, text in zip(rows.ids, rows.texts, strict=True)])
            new, unseen = self._rows.add(keys), self._ids.add(string_keys(rows.ids))
            if (changed := np.flatnonzero(new & ~unseen)).size:
                raise PotstillError(
                    f"id {rows.ids[changed[0]]!r}: has two texts. Give each text an id of its own, or leave `--id` out."
                )
        self.left_out["empty"] += len(batch) - len(rows)
        self.left_out["repeated"] += len(rows) - int(new.sum())
        return rows.chosen(new), (keys[new] % np.uint64(size) == 0).tolist()
