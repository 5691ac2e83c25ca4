"""Statistics of a set's rows: lengths, labels, rules, and how sure the teacher is.

Numbers are counted in bins between their minimum and maximum, which a first pass finds, so memory
holds only the bins, however many rows there are.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.inspection.changes import RuleName
from pipeline_lib.inspection.distances import entropies
from pipeline_lib.inspection.filters import Filter, made_by
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.inspection.rows import Names, label_name
from pipeline_lib.shards.columns import FIRST, SECOND, column_suffixes

BINS = 1000
"""The most bins of a distribution.  Whole numbers get a bin each if these suffice."""
NO_ANSWER, NO_LABEL = "no answer", "no label"
Values = dict[str, tuple[str, np.ndarray]]
"""Numbers of a batch's rows: by name, their unit and values, (rows,)."""


@dataclass
class Numbers:
    """The distribution of a number over rows.

    :ivar count: rows that have a value; :ivar missing: rows that have none.
    :ivar counts: rows per bin, int64 (bins,), between ``low`` and ``high``.
    """

    unit: str
    whole: bool
    count: int = 0
    missing: int = 0
    low: float = np.inf
    high: float = -np.inf
    total: float = 0.0
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def learn(self, values: np.ndarray) -> None:
        """Take in the range of some rows' values (NaN if missing), in a first pass."""
        known = values[~np.isnan(values)]
        self.count += len(known)
        self.missing += len(values) - len(known)
        if len(known):
            self.low = min(self.low, float(known.min()))
            self.high = max(self.high, float(known.max()))
            self.total += float(known.sum())

    def count_in(self, values: np.ndarray) -> None:
        """Count values into bins, in a second pass over the same rows."""
        known = values[~np.isnan(values)]
        if len(known):
            self.counts = self._bins(known) + (self.counts if len(self.counts) else 0)

    @property
    def mean(self) -> float | None:
        """The mean; None without a value."""
        return self.total / self.count if self.count else None

    def quantile(self, share: float) -> float | None:
        """Return the value below which this share of rows falls, to the precision of a bin."""
        if not self.count:
            return None
        number = int(np.searchsorted(np.cumsum(self.counts), share * self.count))
        edges = self.edges
        return float(edges[number]) if self.whole else float(edges[number : number + 2].mean())

    def bars(self, most: int = 10) -> list[tuple[float, float, int]]:
        """Return (from, to, rows) of at most ``most`` bins of equal width."""
        if not self.count:
            return []
        each = -(-len(self.counts) // most)
        edges, starts = self.edges, range(0, len(self.counts), each)
        # For whole numbers, a bin ends at its own last value, not at the next one's first.
        less = 1 if self.whole else 0
        return [
            (
                float(edges[start]),
                float(edges[min(start + each, len(self.counts))]) - less,
                int(self.counts[start : start + each].sum()),
            )
            for start in starts
        ]

    @property
    def edges(self) -> np.ndarray:
        """The edges of the bins, float64 (bins + 1,)."""
        if self.whole:
            width = -(-int(self.high - self.low + 1) // BINS)
            bins = -(-int(self.high - self.low + 1) // width)
            return self.low + width * np.arange(bins + 1)
        return np.linspace(self.low, self.high if self.high > self.low else self.low + 1, BINS + 1)

    def _bins(self, known: np.ndarray) -> np.ndarray:
        edges = self.edges
        places = np.searchsorted(edges, known, side="right") - 1
        return np.bincount(np.clip(places, 0, len(edges) - 2), minlength=len(edges) - 1)


@dataclass
class OfRule:
    """Totals over the rows that one rule changed.

    :ivar changes: see :func:`~pipeline_lib.inspection.filters.made_by`.
    :ivar entropy: total entropy of the teacher's answers, in bits; :ivar answers: their number.
    """

    rows: int = 0
    changes: int = 0
    words: int = 0
    entropy: float = 0.0
    answers: int = 0

    @property
    def mean_length(self) -> float | None:
        """Words per row; None without rows."""
        return self.words / self.rows if self.rows else None

    @property
    def mean_entropy(self) -> float | None:
        """Bits per answer; None without answers, and for a regression."""
        return self.entropy / self.answers if self.answers else None


@dataclass
class Figures:
    """All figures of a set.

    :ivar numbers: distributions by name; :ivar labels: rows by class, empty for a regression;
    :ivar answers: rows by the teacher's answer, empty without answers and for a regression.
    :ivar agreeing: how many labelled and answered rows have the teacher's answer as their label,
        and how many such rows there are.
    """

    rows: int = 0
    numbers: dict[str, Numbers] = field(default_factory=dict)
    labels: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    rules: defaultdict[RuleName, OfRule] = field(default_factory=lambda: defaultdict(OfRule))
    iterations: Counter[int] = field(default_factory=Counter)
    agreeing: tuple[int, int] = (0, 0)


def figures(rows: JoinedRows, names: Names, wanted: Filter) -> Figures:
    """Return the figures of the selected rows of a set, in two passes over it."""
    result = learn(rows, names, wanted, _values)
    for batch, kept in _kept(rows, wanted):
        for name, (_, values) in _values(batch, rows.is_scored).items():
            result.numbers[name].count_in(values[kept].astype(np.float64))
    return result


def learn(rows: JoinedRows, names: Names, wanted: Filter, values_of: Callable[[RowBatch, bool], Values]) -> Figures:
    """Return the figures of the selected rows in one pass: those of numbers without their bins.

    :param values_of: returns a batch's numbers, knowing whether the task is a regression.
    """
    result = Figures()
    for batch, kept in _kept(rows, wanted):
        result.rows += int(kept.sum())
        for name, (unit, values) in values_of(batch, rows.is_scored).items():
            numbers = result.numbers.setdefault(name, Numbers(unit, values.dtype.kind == "i"))
            numbers.learn(values[kept].astype(np.float64))
        _categories(result, batch, kept, rows.is_scored, names)
    return result


def _kept(rows: JoinedRows, wanted: Filter) -> Iterator[tuple[RowBatch, np.ndarray]]:
    for batch in rows.batches():
        yield batch, wanted.wants(batch)


def _values(batch: RowBatch, regression: bool) -> Values:
    """Return the values to count in bins."""
    values = {}
    for side, name in ((FIRST, "length"), (SECOND, "length of the second sentence")):
        if f"text{side}" in batch.table.column_names:
            values[name] = ("words", _lengths(batch, side))
    values |= scores(batch, regression)
    for side, name in ((FIRST, "vector"), (SECOND, "vector of the second sentence")):
        if side in batch.vectors:
            lengths = np.linalg.norm(batch.vectors[side].astype(np.float64), axis=1)
            values[name] = ("length", lengths)
    return values


def scores(batch: RowBatch, regression: bool) -> Values:
    """Return the scores of a regression, or the entropy of the teacher's answers."""
    values = {}
    if regression and "label" in batch.table.column_names:
        values["label"] = ("score", batch.labels)
    if batch.logits is not None and regression:
        values["teacher's answer"] = ("score", batch.logits[:, 0].astype(np.float64))
    elif batch.logits is not None:
        values["teacher's entropy"] = ("bits", entropies(batch.logits, batch.kind))
    return values


def _lengths(batch: RowBatch, side: str) -> np.ndarray:
    """Return the number of words of each sentence, int64 (rows,)."""
    if f"words{side}" in batch.table.column_names:
        return pc.list_value_length(batch.table[f"words{side}"]).to_numpy().astype(np.int64)
    split = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(batch.table[f"text{side}"]))
    return pc.list_value_length(split).to_numpy().astype(np.int64)


def _categories(result: Figures, batch: RowBatch, kept: np.ndarray, regression: bool, names: Names) -> None:
    labels = batch.labels
    if KINDS[batch.kind].has_several:
        _label_categories(result, batch, kept, names)
    elif not regression and "label" in batch.table.column_names:
        result.labels.update(_named(labels[kept], names, NO_LABEL))
    if KINDS[batch.kind].one_of and batch.logits is not None:
        known = answered(batch.logits)
        best = np.where(known, KINDS[batch.kind].decide(batch.logits), np.nan)
        result.answers.update(_named(best[kept], names, NO_ANSWER))
        both = kept & known & ~np.isnan(labels)
        right, all_ = result.agreeing
        result.agreeing = (right + int((best == labels)[both].sum()), all_ + int(both.sum()))
    if "iteration" in batch.table.column_names:
        result.iterations.update(batch.table["iteration"].to_numpy()[kept].tolist())
    for rule, changes in made_by(batch).items():
        _add(result.rules[rule], batch, changes * kept, regression)


def _label_categories(result: Figures, batch: RowBatch, kept: np.ndarray, names: Names) -> None:
    """Count the rows of each of several labels, and those that the teacher gives each."""
    result.labels.update(_having(batch.marks[kept], names, NO_LABEL))
    if batch.logits is None:
        return
    known = answered(batch.logits)
    decided = np.where(known[:, None], batch.logits > 0, np.nan)
    result.answers.update(_having(decided[kept], names, NO_ANSWER))
    both = kept & known & ~np.isnan(batch.labels)
    right, all_ = result.agreeing
    same = (decided == batch.marks).all(axis=1)
    result.agreeing = (right + int(same[both].sum()), all_ + int(both.sum()))


def _having(marks: np.ndarray, names: Names, missing: str) -> dict[str, int]:
    """Return how many rows have each label, 0 or 1, (rows, labels); NaN: it is not known."""
    hidden = np.isnan(marks).any(axis=1)
    counts = np.nansum(marks, axis=0).astype(np.int64).tolist()
    named = {str(label_name(number, names)): count for number, count in enumerate(counts)}
    return named | ({missing: int(hidden.sum())} if hidden.any() else {})


def _add(counts: OfRule, batch: RowBatch, changes: np.ndarray, regression: bool) -> None:
    rows = changes > 0
    counts.rows += int(rows.sum())
    counts.changes += int(changes.sum())
    counts.words += sum(int(_lengths(batch, s)[rows].sum()) for s in column_suffixes(batch.table))
    if batch.logits is not None and not regression:
        entropy = entropies(batch.logits, batch.kind)[rows]
        counts.entropy += float(np.nansum(entropy))
        counts.answers += int((~np.isnan(entropy)).sum())


def _named(classes: np.ndarray, names: Names, missing: str) -> dict[str, int]:
    known = classes[~np.isnan(classes)].astype(np.int64)
    counts = np.bincount(known, minlength=len(names or ())).tolist()
    named = {str(label_name(number, names)): count for number, count in enumerate(counts)}
    return named | ({missing: len(classes) - len(known)} if len(known) < len(classes) else {})
