"""Finds the rows that two sets have in common, by content key and in constant memory.

Keys are partitioned by value into files on disk, which are compared one by one (a Grace hash join:
Kitsuregawa et al. 1983).
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.inspection.joined import BATCH, JoinedRows, RowBatch
from pipeline_lib.shards.columns import texts

PART = 1 << 18
"""Rows per partition, whose keys are compared at once."""
MAX_PARTS = 512
"""The most files open at once; beyond 134 million rows, partitions grow instead."""
_ENTRY = np.dtype([("key", "<u8"), ("row", "<i8"), ("label", "<f8"), ("synthetic", "?")])


@dataclass
class Side:
    """Rows that are in only one of two sets.

    :ivar first: the numbers of the first ones, sorted.
    """

    originals: int = 0
    synthetic: int = 0
    first: list[int] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """The number of these rows."""
        return self.originals + self.synthetic

    def add(self, entries: np.ndarray, limit: int) -> None:
        """Add the rows of one partition."""
        self.synthetic += int(entries["synthetic"].sum())
        self.originals += int((~entries["synthetic"]).sum())
        smallest = np.sort(entries["row"])[:limit].tolist()
        self.first = sorted([*self.first, *smallest])[:limit]


@dataclass
class Matches:
    """The common rows of two sets: a file of (row number in one, row number in the other).

    :ivar untouched: common rows that are not in the file, because their shards are byte-identical, answers included.
    :ivar relabelled: common rows with a different label.
    """

    path: Path
    gone: Side = field(default_factory=Side)
    added: Side = field(default_factory=Side)
    rows: int = 0
    untouched: int = 0
    relabelled: int = 0

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the row numbers, int64 (rows, 2), a few thousand at a time."""
        for start in range(0, self.rows, BATCH):
            yield self.read(start, BATCH)

    def read(self, start: int, rows: int) -> np.ndarray:
        """Return some row numbers, int64 (rows, 2)."""
        return np.fromfile(self.path, "<i8", 2 * rows, offset=16 * start).reshape(-1, 2)


def match(before: JoinedRows, after: JoinedRows, folder: Path, limit: int) -> Matches:
    """Find the rows that two sets have in common; duplicate rows are matched in order.

    :param folder: an empty folder, for files of 25 bytes per row of either set and 16 per common row.
    :param limit: how many of the rows that are in only one set to list.
    """
    matches = Matches(folder / "common")
    matches.path.touch()
    same = _same_shards(before, after)
    matches.untouched = sum(before.inputs.manifest.shards[here].rows for here, _ in same)
    parts = min(MAX_PARTS, max(1, -(-max(len(before), len(after)) // PART)))
    for side, rows in enumerate((before, after)):
        _spread(rows, {pair[side] for pair in same}, [folder / f"{side}-{n}" for n in range(parts)])
    for number in range(parts):
        here, there = (_read(folder / f"{side}-{number}") for side in range(2))
        left, right = _matched(here, there)
        matches.gone.add(np.delete(here, left), limit)
        matches.added.add(np.delete(there, right), limit)
        matches.relabelled += _relabelled(here["label"][left], there["label"][right])
        rows = np.stack([here["row"][left], there["row"][right]], axis=1)
        matches.rows += len(rows)
        # In row order, so that neighbouring rows are read together.
        with open(matches.path, "ab") as file:
            rows[np.argsort(rows[:, 0])].tofile(file)
    return matches


def _same_shards(before: JoinedRows, after: JoinedRows) -> list[tuple[int, int]]:
    """Return (shard in one, shard in the other) for byte-identical shards."""
    places: dict[tuple[str, ...], list[int]] = {}
    for number in range(len(after.inputs.manifest.shards)):
        places.setdefault(_digests(after, number), []).append(number)
    shards = range(len(before.inputs.manifest.shards))
    there = ((here, places.get(_digests(before, here))) for here in shards)
    return [(here, numbers.pop(0)) for here, numbers in there if numbers]


def _digests(rows: JoinedRows, number: int) -> tuple[str, ...]:
    return tuple(shard_set.manifest.shards[number].sha256 for shard_set in (rows.inputs, *rows.answers))


def _spread(rows: JoinedRows, left_out: set[int], paths: list[Path]) -> None:
    """Write what identifies the rows to one file per partition."""
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, "wb")) for path in paths]
        for batch in rows.batches():
            if batch.shard in left_out:
                continue
            entries = np.empty(len(batch), _ENTRY)
            entries["key"] = _keys(rows, batch)
            entries["row"] = np.arange(batch.first, batch.first + len(batch))
            entries["label"] = batch.labels
            entries["synthetic"] = batch.is_synthetic
            # Keys are hashes: any of their bits distribute them evenly.
            part = (entries["key"] >> np.uint64(32)) % np.uint64(len(files))
            for number in np.unique(part).tolist():
                entries[part == number].tofile(files[number])


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


def _read(path: Path) -> np.ndarray:
    entries = np.fromfile(path, _ENTRY)
    return entries[np.lexsort((entries["row"], entries["key"]))]


def _matched(here: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which entries of either set are the same row, int64.

    :param here: entries sorted by key and row; :param there: the same.
    """
    keys, others = here["key"], there["key"]
    nth = np.arange(len(keys)) - np.searchsorted(keys, keys, side="left")
    first = np.searchsorted(others, keys, side="left")
    count = np.searchsorted(others, keys, side="right") - first
    matched = np.flatnonzero(nth < count)
    return matched, (first + nth)[matched]


def _relabelled(one: np.ndarray, other: np.ndarray) -> int:
    return int(((one != other) & ~(np.isnan(one) & np.isnan(other))).sum())
