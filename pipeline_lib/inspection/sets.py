"""A shard set and what answers to it, read together batch by batch.

Shards are mapped files: a batch is a view of some of their rows, so that memory holds what is
computed of one batch, however large the set is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.layout import Layout, pair_of
from pipeline_lib.storage.columns import FIRST, SECOND, holds_scores, matrix
from pipeline_lib.storage.shards import ShardSet, check_answers, read_shard
from pipeline_lib.storage.vectors import StoredVectors

BATCH = 4096
"""Rows that are looked at together."""


@dataclass(frozen=True)
class Batch:
    """Neighbouring rows of one shard, with the teacher's answers and vectors where there are any.

    :ivar shard: the shard's number; :ivar start: of the first row in it.
    :ivar first: the number of the first row in the whole set.
    :ivar logits: float32 (rows, classes), not-a-number where a row has no answer, or None.
    :ivar vectors: float32 (rows, width) by side.
    """

    shard: int
    start: int
    first: int
    table: pa.Table
    logits: np.ndarray | None
    vectors: dict[str, np.ndarray]

    def __len__(self) -> int:
        return self.table.num_rows

    @property
    def is_synthetic(self) -> np.ndarray:
        """Which rows were made by augmentation, bool (rows,)."""
        if "iteration" not in self.table.column_names:
            return np.zeros(len(self), bool)
        return self.table["iteration"].to_numpy() > 0

    @property
    def labels(self) -> np.ndarray:
        """The labels, float64 (rows,): class numbers or scores, not-a-number where hidden."""
        if "label" not in self.table.column_names:
            return np.full(len(self), np.nan)
        column = self.table["label"].cast(pa.float64())
        return pc.fill_null(column, np.nan).to_numpy()


@dataclass(frozen=True)
class JoinedSet:
    """A set of inputs, and the sets that answer to it row for row: logits, vectors.

    :ivar name: as it is shown, that of the inputs' folder unless another was given.
    """

    inputs: ShardSet
    answers: tuple[ShardSet, ...]
    name: str

    @classmethod
    def open(cls, folder: Path, outputs: Path | None = None, name: str | None = None) -> Self:
        """Open a set and what belongs to it by the layout of ``data``.

        :param folder: inputs, or outputs, whose inputs are then found.
        :param outputs: a teacher's; else those that the layout names, if they are there.
        :param name: what to call it.
        :raises DistilleryError: if a set is unfinished, or outputs belong to other inputs.
        """
        pair = pair_of(folder)
        if pair is None or not _is_set(pair.inputs):
            return cls(ShardSet.open(folder), (), name or folder.as_posix())
        wanted = [outputs or pair.outputs, *_vectors_beside(pair.inputs)]
        # Asked for by name, outputs must be there.
        found = [f for f in wanted if _is_set(f) or f in (folder, outputs)]
        inputs = ShardSet.open(pair.inputs)
        answers = [ShardSet.open(own) for own in dict.fromkeys(found)]
        for own in answers:
            try:
                check_answers(inputs.manifest, own.manifest)
            except DistilleryError as error:
                raise DistilleryError(f"{own.folder}: {error}") from error
        return cls(inputs, tuple(answers), name or pair.inputs.as_posix())

    def __len__(self) -> int:
        return self.inputs.manifest.rows

    @property
    def is_pair(self) -> bool:
        """Whether its rows have two sentences."""
        return f"text{SECOND}" in self.schema

    @property
    def schema(self) -> dict[str, str]:
        """The inputs' columns."""
        return self.inputs.manifest.schema

    @property
    def is_transfer(self) -> bool:
        """Whether rows say how they were made."""
        return f"rules{FIRST}" in self.schema

    @cached_property
    def classes(self) -> int | None:
        """How many numbers the teacher answers with, 1 of a regression; None without answers."""
        for batch in self.batches(1):
            return None if batch.logits is None else batch.logits.shape[1]
        return None

    @cached_property
    def is_regression(self) -> bool:
        """Whether labels and answers are scores."""
        if self.classes is not None:
            return self.classes == 1
        first = next(self.inputs.tables(), None)
        return first is not None and "label" in first.column_names and holds_scores(first["label"])

    def holder(self, column: str) -> ShardSet | None:
        """Return the set that has a column, the inputs first; None if none has it."""
        sets = (self.inputs, *self.answers)
        return next((own for own in sets if column in own.manifest.schema), None)

    def place(self, shard: int, row: int) -> str:
        """Return ``shard:row``, as `distill shards show` prints it."""
        return f"{self.inputs.manifest.shards[shard].name.removesuffix('.arrow')}:{row}"

    def batches(self, rows: int = BATCH) -> Iterator[Batch]:
        """Yield all rows in their order.

        :raises DistilleryError: if a shard is missing, torn, or has other rows than it should.
        """
        first = 0
        for number, shard in enumerate(self.inputs.manifest.shards):
            opened = self._open(number)
            for start in range(0, shard.rows, rows):
                yield self._batch(opened, number, start, min(rows, shard.rows - start), first)
            first += shard.rows

    def locate(self, row: int) -> tuple[int, int]:
        """Return (shard, row in it) of a row number of the whole set."""
        for number, shard in enumerate(self.inputs.manifest.shards):
            if row < shard.rows:
                return number, row
            row -= shard.rows
        raise IndexError(row)

    def row(self, shard: int, row: int) -> Batch:
        """Return a batch of one row."""
        first = sum(own.rows for own in self.inputs.manifest.shards[:shard])
        return self._batch(self._open(shard), shard, row, 1, first)

    def column(self, shard: int, name: str) -> pa.ChunkedArray:
        """Return a column of one shard, mapped."""
        return read_shard(self.inputs.path(self.inputs.manifest.shards[shard]))[name]

    def _open(self, number: int) -> dict[Path, pa.Table]:
        """Return the shard's tables by the folders of their sets."""
        opened = {}
        for own in (self.inputs, *self.answers):
            shard = own.manifest.shards[number]
            table = read_shard(own.path(shard))
            if table.num_rows != shard.rows:
                raise DistilleryError(
                    f"{own.path(shard)}: {table.num_rows} rows, the manifest says {shard.rows}. "
                    "Delete the folder and run `dvc repro`."
                )
            opened[own.folder] = table
        return opened

    def _batch(
        self, opened: dict[Path, pa.Table], shard: int, start: int, rows: int, first: int
    ) -> Batch:
        def part(column: str) -> pa.Table | None:
            own = self.holder(column)
            return None if own is None else opened[own.folder].slice(start, rows)

        logits = part("logits")
        vectors = {s: t for s in (FIRST, SECOND) if (t := part(f"vector{s}")) is not None}
        every = np.arange(rows)
        return Batch(
            *(shard, start, first + start, opened[self.inputs.folder].slice(start, rows)),
            None if logits is None else matrix(logits["logits"]),
            {side: StoredVectors([(table, side)])[every] for side, table in vectors.items()},
        )


def _is_set(folder: Path) -> bool:
    return (folder / "manifest.json").exists()


def _vectors_beside(inputs: Path) -> list[Path]:
    """Return where the sentence vectors of a transfer set lie, if it is one."""
    parts = inputs.parts
    if len(parts) < 3 or parts[-3] != "transfer":
        return []
    return [Layout(Path(*parts[:-3])).task_vectors(*parts[-2:])]
