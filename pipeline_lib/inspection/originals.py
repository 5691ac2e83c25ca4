"""The originals that the rows of a transfer set were made from."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.shards.columns import matrix

WINDOW = 8192
"""How many originals are searched at once."""


class Originals:
    """Finds originals by the column ``example``.

    The rows of each shard are in the order of the originals that they were made from, so a search
    continues where the last one ended and holds only one window of originals.
    """

    def __init__(self, rows: JoinedRows) -> None:
        self._set = rows
        names = [shard.name for shard in rows.inputs.manifest.shards]
        numbers = {name: number for number, name in enumerate(names)}
        # Shards are named by block and iteration; the originals are iteration 0.
        self._of = [numbers.get(f"{name.partition('-i')[0]}-i000.arrow") for name in names]
        self._shard: int | None = None
        self._at = 0

    def logits(self, batch: RowBatch) -> np.ndarray:
        """Return the teacher's answers to the originals of a batch's rows, (rows, classes)."""
        number = self._number(batch.shard)
        if self._shard != batch.shard:
            self._shard, self._at = batch.shard, 0
        positions = self._find(self._set.column(number, "key").to_numpy(), batch)
        outputs = self._set.holder("logits")
        column = outputs.read(outputs.manifest.shards[number])["logits"]
        return matrix(column)[positions]

    def of(self, batch: RowBatch) -> tuple[dict[str, Any], np.ndarray | None]:
        """Return the original of a batch of one row: its record, and the teacher's answer.

        :return: the answer has shape (1, classes).
        """
        number, key = self._number(batch.shard), batch.table["example"][0]
        row = pc.index(self._set.column(number, "key"), key).as_py()
        if row < 0:
            raise self._lost(batch, key)
        original = self._set.row(number, row)
        return original.table.to_pylist()[0], original.logits

    def _number(self, shard: int) -> int:
        number = self._of[shard]
        if number is None:
            name = self._set.inputs.manifest.shards[shard].name
            raise PotstillError(
                f"{self._set.name}: {name}: the shard of its originals is not in the set. Run `dvc repro`."
            )
        return number

    def _find(self, keys: np.ndarray, batch: RowBatch) -> np.ndarray:
        """Return the row numbers of the examples of a batch among the keys, int64 (rows,)."""
        wanted = batch.table["example"].to_numpy()
        positions, done, at, turned = np.empty(len(wanted), np.int64), 0, self._at, False
        while done < len(wanted):
            hits = _hits(keys[at : at + WINDOW], wanted[done:])
            positions[done : done + len(hits)] = at + hits
            done += len(hits)
            self._at, turned = at, turned and not len(hits)
            if done < len(wanted):
                at += WINDOW
                if at >= len(keys):
                    if turned:
                        raise self._lost(batch, batch.table["example"][done])
                    at, turned = 0, True
        return positions

    def _lost(self, batch: RowBatch, key: pa.Scalar) -> PotstillError:
        return PotstillError(
            f"{self._set.name}: {self._set.place(batch.shard, batch.start)}: its original "
            f"{key.as_py():016x} is not in the set. Run `dvc repro`."
        )


def _hits(window: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the positions in the window of the first wanted keys, up to one that is missing."""
    if not len(window):
        return np.empty(0, np.int64)
    order = np.argsort(window, kind="stable")
    places = np.searchsorted(window, wanted, sorter=order)
    places = order[np.minimum(places, len(window) - 1)]
    missing = window[places] != wanted
    return places[: int(missing.argmax()) if missing.any() else len(wanted)]
