"""A shard set and the answers to it, read together batch by batch.

Shards are memory-mapped: a batch is a view of some of their rows, so memory holds only what is
computed for one batch, however large the set is.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS, Classes, kind_of_labels, kind_of_model
from pipeline_lib.base.layout import Layout, pair_of
from pipeline_lib.shards.columns import FIRST, SECOND, matrix
from pipeline_lib.shards.shard_sets import ShardSet, check_answers
from pipeline_lib.shards.vectors import StoredVectors

BATCH = 4096
"""Rows per batch."""
ANSWERS = ("logits", f"vector{FIRST}", f"vector{SECOND}")
"""Columns of what models answer."""


@dataclass(frozen=True)
class RowBatch:
    """Consecutive rows of one shard, with the teacher's answers and vectors if there are any.

    :ivar shard: the shard's number; :ivar start: the first row's number within it.
    :ivar first: the first row's number within the whole set.
    :ivar answers: by column, the rows of the set that has it: ``logits``, ``vector``, ``vector_2``.
    """

    shard: int
    start: int
    first: int
    table: pa.Table
    answers: dict[str, pa.Table]

    def __len__(self) -> int:
        return self.table.num_rows

    @cached_property
    def logits(self) -> np.ndarray | None:
        """The teacher's answers, float32 (rows, classes), NaN where there is none; or None."""
        return matrix(self.answers["logits"]["logits"]) if "logits" in self.answers else None

    @cached_property
    def vectors(self) -> dict[str, np.ndarray]:
        """Sentence vectors by column suffix, float32 (rows, width)."""
        every = np.arange(len(self))
        return {
            side: StoredVectors([(self.answers[f"vector{side}"], side)])[every]
            for side in (FIRST, SECOND)
            if f"vector{side}" in self.answers
        }

    @property
    def is_synthetic(self) -> np.ndarray:
        """Which rows were made by augmentation, bool (rows,)."""
        if "iteration" not in self.table.column_names:
            return np.zeros(len(self), bool)
        return self.table["iteration"].to_numpy() > 0

    @property
    def kind(self) -> str:
        """What labels and answers are."""
        if "label" in self.table.column_names:
            return kind_of_labels(self.table["label"])
        return Classes.name if self.logits is None else kind_of_model(self.logits[0], {})

    @property
    def labels(self) -> np.ndarray:
        """The labels, float64 (rows,): class numbers or scores, NaN if hidden.

        Of several labels, a number that tells sets apart; see :attr:`marks`.
        """
        if "label" not in self.table.column_names:
            return np.full(len(self), np.nan)
        if KINDS[self.kind].has_several:
            # Every number below 2**53 is exact in float64.
            bits = 2.0 ** (np.arange(self.marks.shape[1]) % 53)
            return self.marks @ bits
        column = self.table["label"].cast(pa.float64())
        return pc.fill_null(column, np.nan).to_numpy()

    @cached_property
    def marks(self) -> np.ndarray:
        """Which of several labels each row has, 0 or 1, float64 (rows, labels); NaN: hidden."""
        column = self.table["label"]
        width = column.type.list_size
        marks = np.full((len(self), width), np.nan)
        marks[column.is_valid().to_numpy()] = matrix(column.drop_null())
        return marks


@dataclass(frozen=True)
class JoinedRows:
    """A set of inputs, the sets that match it row for row (logits, vectors), and the name to display.

    :ivar further: the columns of a set of the user's own.
    """

    inputs: ShardSet
    answers: tuple[ShardSet, ...]
    name: str
    further: tuple[str, ...] = ()

    @classmethod
    def open(cls, folder: Path, outputs: Path | None = None) -> Self:
        """Open a set, by the folder of its inputs or outputs, and its counterparts by the layout of ``data``.

        :param outputs: a teacher's outputs; by default those of the layout, if they exist.
        """
        pair = pair_of(folder)
        if pair is None or not _is_set(pair.inputs):
            return cls._of_any(ShardSet.open(folder))
        # Outputs that were named explicitly must exist.
        beside = [outputs or pair.outputs, *_vectors_beside(pair.inputs)]
        folders = [f for f in beside if _is_set(f) or f in (folder, outputs)]
        inputs = ShardSet.open(pair.inputs)
        answers = [ShardSet.open(path) for path in dict.fromkeys(folders)]
        for shard_set in answers:
            try:
                check_answers(inputs.manifest, shard_set.manifest)
            except PotstillError as error:
                raise PotstillError(f"{shard_set.folder}: {error}") from error
        return cls(inputs, tuple(answers), pair.inputs.as_posix())

    @classmethod
    def _of_any(cls, shards: ShardSet) -> Self:
        """Join a set whose path says nothing with the first set that its shards were made of, if one is there."""
        sources, name = [shard.source for shard in shards.manifest.shards], shards.folder.as_posix()
        for path in Layout().data.rglob("manifest.json") if any(sources) else ():
            with suppress(PotstillError):
                inputs = ShardSet.open(path.parent).manifest
                if [shard.sha256 for shard in inputs.shards] == sources:
                    further = tuple(column for column in shards.manifest.schema if column not in inputs.schema)
                    return cls(ShardSet.open(path.parent), (shards,), name, further)
        return cls(shards, (), name)

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
        """Whether rows record how they were made."""
        return f"rules{FIRST}" in self.schema

    @cached_property
    def classes(self) -> int | None:
        """How many numbers an answer has, 1 for a regression; None without answers."""
        for batch in self.batches(1):
            return None if batch.logits is None else batch.logits.shape[1]
        return None

    @cached_property
    def kind(self) -> str:
        """What labels and answers are."""
        return next((batch.kind for batch in self.batches(1)), Classes.name)

    @property
    def is_scored(self) -> bool:
        """Whether answers are scores, without probabilities."""
        return not KINDS[self.kind].has_probabilities

    def holder(self, column: str) -> ShardSet | None:
        """Return the set that has a column, looking at the inputs first; None if none has it."""
        sets = (self.inputs, *self.answers)
        return next((shard_set for shard_set in sets if column in shard_set.manifest.schema), None)

    def shard_number(self, name: str) -> int:
        """Return the number of the shard with this name, with or without its ending."""
        names = [shard.name for shard in self.inputs.manifest.shards]
        if (file := f"{name.removesuffix('.arrow')}.arrow") in names:
            return names.index(file)
        which = f"the shards are {names[0]} to {names[-1]}" if names else "the set is empty"
        raise PotstillError(f"{self.name}: no shard {name!r}; {which}.")

    def place(self, shard: int, row: int) -> str:
        """Return ``shard:row``, as `distill shards show` prints it."""
        return f"{self.inputs.manifest.shards[shard].name.removesuffix('.arrow')}:{row}"

    def batches(self, rows: int = BATCH) -> Iterator[RowBatch]:
        """Yield all rows in order."""
        first = 0
        for number, shard in enumerate(self.inputs.manifest.shards):
            opened = self._open(number)
            for start in range(0, shard.rows, rows):
                yield self._batch(opened, number, start, min(rows, shard.rows - start), first)
            first += shard.rows

    def row(self, shard: int, row: int) -> RowBatch:
        """Return a batch of one row."""
        first = sum(earlier.rows for earlier in self.inputs.manifest.shards[:shard])
        return self._batch(self._open(shard), shard, row, 1, first)

    def column(self, shard: int, name: str) -> pa.ChunkedArray:
        """Return a column of one shard, memory-mapped."""
        return self.inputs.read(self.inputs.manifest.shards[shard])[name]

    def _open(self, number: int) -> dict[Path, pa.Table]:
        sets = (self.inputs, *self.answers)
        return {each.folder: each.read(each.manifest.shards[number]) for each in sets}

    def _batch(self, opened: dict[Path, pa.Table], shard: int, start: int, rows: int, first: int) -> RowBatch:
        slices = {folder: table.slice(start, rows) for folder, table in opened.items()}
        columns = (*ANSWERS, *self.further)
        answers = {column: slices[h.folder] for column in columns if (h := self.holder(column)) is not None}
        return RowBatch(shard, start, first + start, slices[self.inputs.folder], answers)


def _is_set(folder: Path) -> bool:
    return (folder / "manifest.json").exists()


def _vectors_beside(inputs: Path) -> list[Path]:
    """Return the folder of a transfer set's sentence vectors, if this is one."""
    *above, kind, task, recipe = ["", "", "", *inputs.parts]
    return [Layout(Path(*above)).task_vectors(task, recipe)] if kind == "transfer" else []
