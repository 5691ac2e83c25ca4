"""The originals that the rows of a transfer set were made from."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.shards.columns import matrix


class Originals:
    """Finds originals by the column ``example``."""

    def __init__(self, rows: JoinedRows) -> None:
        self._set = rows
        names = [shard.name for shard in rows.inputs.manifest.shards]
        numbers = {name: number for number, name in enumerate(names)}
        # Shards are named by block and iteration; the originals are iteration 0.
        self._order: tuple[int, np.ndarray] | None = None
        self._of = [numbers.get(f"{name.partition('-i')[0]}-i000.arrow") for name in names]

    def logits(self, batch: RowBatch) -> np.ndarray:
        """Return the teacher's answers to the originals of a batch's rows, (rows, classes)."""
        number = self._number(batch.shard)
        keys, examples = self._set.column(number, "key").to_numpy(), batch.table["example"]
        if not len(keys):
            raise self._lost(batch, examples[0])
        if self._order is None or self._order[0] != number:
            self._order = number, np.argsort(keys, kind="stable")
        order = self._order[1]
        ranks = np.searchsorted(keys, examples.to_numpy(), sorter=order)
        positions = order[np.minimum(ranks, len(keys) - 1)]
        if len(missing := np.flatnonzero(keys[positions] != examples.to_numpy())):
            raise self._lost(batch, examples[int(missing[0])])
        outputs = self._set.holder("logits")
        column = outputs.read(outputs.manifest.shards[number])["logits"]
        return matrix(column)[positions]

    def of(self, batch: RowBatch) -> tuple[dict[str, Any], np.ndarray | None]:
        """Return the original of a batch of one row: its record, and the teacher's answer, (1, classes)."""
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
                f"{self._set.name}: {name}: the shard of its originals is not in the set. Run `distill run`."
            )
        return number

    def _lost(self, batch: RowBatch, key: pa.Scalar) -> PotstillError:
        return PotstillError(
            f"{self._set.name}: {self._set.place(batch.shard, batch.start)}: its original "
            f"{key.as_py():016x} is not in the set. Run `distill run`."
        )
