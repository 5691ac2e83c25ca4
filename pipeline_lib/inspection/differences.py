"""Compares two sets: rows added and removed, and how far the answers to the others moved.

Rows are the same if their content keys are.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.inspection.distances import moved
from pipeline_lib.inspection.joined import BATCH, JoinedRows, RowBatch
from pipeline_lib.inspection.sampling import Top
from pipeline_lib.shards.columns import FIRST, SECOND, texts
from pipeline_lib.shards.vectors import StoredVectors, unit

_ENTRY = np.dtype([("key", "<u8"), ("row", "<i8"), ("label", "<f8"), ("synthetic", "?")])


@dataclass
class Side:
    """Rows that are in only one of two sets, with the numbers of the first ones, sorted."""

    originals: int
    synthetic: int
    first: list[int]

    @classmethod
    def of(cls, entries: np.ndarray, limit: int) -> "Side":
        """Count the rows, and list the first ones."""
        synthetic = int(entries["synthetic"].sum())
        return cls(len(entries) - synthetic, synthetic, np.sort(entries["row"])[:limit].tolist())

    @property
    def rows(self) -> int:
        """The number of these rows."""
        return self.originals + self.synthetic


@dataclass
class Distances:
    """The distribution of distances, float64 (rows,), in a ``unit``; some rows' are ``missing``."""

    unit: str
    missing: int = 0
    _batches: list[np.ndarray] = field(default_factory=list)

    def add(self, values: np.ndarray) -> None:
        """Take in some rows' values (NaN if missing)."""
        self._batches.append(values[~np.isnan(values)])
        self.missing += len(values) - len(self._batches[-1])

    @cached_property
    def values(self) -> np.ndarray:
        """All values, once they have been added."""
        return np.concatenate([np.empty(0), *self._batches])

    @property
    def count(self) -> int:
        """The rows that have a value."""
        return len(self.values)

    def quantile(self, share: float) -> float | None:
        """Return the value below which this share of rows falls; None without a value."""
        return float(np.quantile(self.values, share)) if self.count else None

    def bars(self) -> list[tuple[float, float, int]]:
        """Return (from, to, rows) of ten bins of equal width."""
        if not self.count:
            return []
        low, high = self.values.min(), self.values.max()
        rows, edges = np.histogram(self.values, 10, (low, high if high > low else low + 1))
        return list(zip(edges[:-1].tolist(), edges[1:].tolist(), rows.tolist(), strict=True))


@dataclass
class Moves:
    """How far apart the answers or vectors of common rows are.

    :ivar apart: Jensen-Shannon divergence in bits, distance of scores, or 1 - cosine.
    :ivar changed: rows whose answer is not exactly equal.
    :ivar most: the rows that moved furthest: distance, row number in either set.
    """

    apart: Distances
    changed: int = 0
    most: list[tuple[float, int, int]] = field(default_factory=list)


@dataclass
class Difference:
    """The difference between two sets.

    :ivar common: rows that both have; :ivar untouched: those in shards that are byte-identical,
        answers included, which are not in any :class:`Moves`.
    :ivar answers: how far the teacher's answers moved; None if either set has none.
    :ivar other: common rows whose answer is another class.
    :ivar vectors: how far vectors moved, by column suffix.
    """

    gone: Side
    added: Side
    common: int
    untouched: int
    relabelled: int
    answers: Moves | None = None
    other: int = 0
    answers_lost: int = 0
    answers_gained: int = 0
    vectors: dict[str, Moves] = field(default_factory=dict)


def difference(before: JoinedRows, after: JoinedRows, limit: int) -> Difference:
    """Compare two sets, and list at most ``limit`` of the added, removed and moved rows."""
    same = _same_shards(before, after)
    untouched = sum(before.inputs.manifest.shards[here].rows for here, _ in same)
    old, new = (_entries(rows, {pair[side] for pair in same}) for side, rows in enumerate((before, after)))
    left, right = _matched(old, new)
    sides = (Side.of(np.delete(old, left), limit), Side.of(np.delete(new, right), limit))
    labels, others = old["label"][left], new["label"][right]
    relabelled = (labels != others) & ~(np.isnan(labels) & np.isnan(others))
    result = Difference(*sides, len(left) + untouched, untouched, int(relabelled.sum()))
    # In row order, so that neighbouring rows are read together.
    common = np.stack([old["row"][left], new["row"][right]], axis=1)
    common = common[np.argsort(common[:, 0])]
    logits = _stored(before, after, "logits", FIRST)
    if logits:
        measure = "distance of the scores" if before.is_scored else "bits"
        for here, there in _both(logits, common):
            _count(result, here, there, before.kind)
        result.answers = _moves(logits, common, measure, limit, partial(moved, kind=before.kind))
    for side in (FIRST, SECOND):
        if vectors := _stored(before, after, "vector", side):
            result.vectors[side] = _moves(vectors, common, "1 - cosine", limit, _apart)
    return result


def _stored(
    before: JoinedRows, after: JoinedRows, column: str, side: str
) -> tuple[StoredVectors, StoredVectors] | None:
    stored = before.stored(column, side), after.stored(column, side)
    if None in stored:
        return None
    here, there = (vectors.shape[1] if len(vectors) else 0 for vectors in stored)
    if here and there and here != there:
        raise PotstillError(
            f"{before.name}, {after.name}: `{column}` of {here} and of {there} numbers cannot be "
            "compared. Name sets of the same task and teacher."
        )
    return stored


def _both(stored: tuple[StoredVectors, StoredVectors], common: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the values of common rows in either set, float32 (rows, width) each, a few thousand at a time."""
    for start in range(0, len(common), BATCH):
        rows = common[start : start + BATCH]
        yield stored[0][rows[:, 0]], stored[1][rows[:, 1]]


def _count(result: Difference, here: np.ndarray, there: np.ndarray, kind: str) -> None:
    before, after = answered(here), answered(there)
    result.answers_lost += int((before & ~after).sum())
    result.answers_gained += int((after & ~before).sum())
    of_kind = KINDS[kind]
    if of_kind.has_probabilities:
        other, _ = of_kind.wrong(of_kind.decide(there), here)
        result.other += int((before & after)[other].sum())


def _moves(
    stored: tuple[StoredVectors, StoredVectors],
    common: np.ndarray,
    measure: str,
    limit: int,
    apart: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Moves:
    moves, top, start = Moves(Distances(measure)), Top(limit), 0
    for here, there in _both(stored, common):
        distances = apart(here, there)
        moves.apart.add(distances)
        same = (here == there).all(axis=1)
        moves.changed += int((~same & ~np.isnan(distances)).sum())
        top.add(np.where(same, np.nan, distances), 0, 0, start)
        start += len(here)
    moves.most = [(score, *common[position].tolist()) for score, (_, _, position) in top.best()]
    return moves


def _apart(vectors: np.ndarray, others: np.ndarray) -> np.ndarray:
    first, second = unit(vectors.astype(np.float64)), unit(others.astype(np.float64))
    return 1 - np.einsum("ij,ij->i", first, second)


def _entries(rows: JoinedRows, left_out: set[int]) -> np.ndarray:
    """Return what identifies the rows, sorted by key and row, without those of some shards."""
    entries = [np.empty(0, _ENTRY)]
    for batch in rows.batches():
        if batch.shard not in left_out:
            of_batch = np.empty(len(batch), _ENTRY)
            of_batch["key"], of_batch["label"] = _keys(rows, batch), batch.labels
            of_batch["row"] = np.arange(batch.first, batch.first + len(batch))
            of_batch["synthetic"] = batch.is_synthetic
            entries.append(of_batch)
    every = np.concatenate(entries)
    return every[np.lexsort((every["row"], every["key"]))]


def _same_shards(before: JoinedRows, after: JoinedRows) -> list[tuple[int, int]]:
    numbers_of: dict[tuple[str, ...], list[int]] = {}
    for number in range(len(after.inputs.manifest.shards)):
        numbers_of.setdefault(_digests(after, number), []).append(number)
    shards = range(len(before.inputs.manifest.shards))
    there = ((here, numbers_of.get(_digests(before, here))) for here in shards)
    return [(here, numbers.pop(0)) for here, numbers in there if numbers]


def _digests(rows: JoinedRows, number: int) -> tuple[str, ...]:
    return tuple(shard_set.manifest.shards[number].sha256 for shard_set in (rows.inputs, *rows.answers))


def _keys(rows: JoinedRows, batch: RowBatch) -> np.ndarray:
    names = batch.table.column_names
    if "key" in names:
        return batch.table["key"].to_numpy()
    if "text" not in names:
        raise PotstillError(
            f"{rows.name}: its rows have neither keys nor texts to identify them. Name a set of "
            "inputs, or outputs whose inputs exist."
        )
    row_texts = texts(batch.table)
    return string_keys(["\t".join(text) if isinstance(text, tuple) else text for text in row_texts])


def _matched(here: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which entries of either set are the same row, int64; duplicate rows are matched in order.

    :param here: entries sorted by key and row; :param there: the same.
    """
    keys, others = here["key"], there["key"]
    nth = np.arange(len(keys)) - np.searchsorted(keys, keys, side="left")
    first = np.searchsorted(others, keys, side="left")
    count = np.searchsorted(others, keys, side="right") - first
    matched = np.flatnonzero(nth < count)
    return matched, (first + nth)[matched]
